"""Credentials of the clouds in use can be read and have the right form."""

from __future__ import annotations

from k8s_ucp.context import Context
from k8s_ucp.credentials import load, place_of
from k8s_ucp.gitops.render.values.clouds import clouds


def check_cloud_credentials(context: Context) -> None:
    """Each cloud in use has a credential of the right form; others are not looked at."""
    for cloud in clouds(context.topology):
        load(cloud, place_of(context.topology, context.workspace, cloud))

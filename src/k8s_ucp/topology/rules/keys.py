"""Rules about keys that require or exclude each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.check_rules import RULES
from k8s_ucp.clouds import CLOUDS
from k8s_ucp.names import is_closed_to_copies
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import runs_in_cluster
from k8s_ucp.topology.problems import Loc, Problem, nearest, shown

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec
    from k8s_ucp.topology.parts import AppCluster, Checks, CoreCluster

_EVERYWHERE = {"provider", "version"}
"""Keys of a cluster that a provider doesn't list in its `keys`."""


def find_bad_databases(spec: Spec) -> Iterator[Problem]:
    """Keys of local databases, and names that can't be those of Services."""
    for index, each in enumerate(spec.databases):
        at: Loc = ("spec", "databases", index)
        if each.image and each.provider != "local":
            yield Problem((*at, "image"), f"{shown(at)}: 'image' is valid for provider local only")
        if not each.name[0].isalpha() and any(
            runs_in_cluster(each, environment) for environment in spec.environments
        ):
            yield Problem(
                (*at, "name"),
                f"{shown(at)}: the name of a local database must begin with a letter, because "
                "its Service has the same name",
            )


def find_bad_mirrors(spec: Spec) -> Iterator[Problem]:
    """Sources and targets that don't go together, and namespaces that take no copies."""
    for index, mirror in enumerate(spec.mirrors):
        at: Loc = ("spec", "mirrors", index)
        if (mirror.source.name is None) == (not mirror.source.labels):
            yield Problem(
                (*at, "source"), f"{shown(at)}.source requires exactly one of 'name' and 'labels'"
            )
        if is_closed_to_copies(mirror.targets.namespace):
            yield Problem(
                (*at, "targets", "namespace"),
                f"copies in namespace '{mirror.targets.namespace}' are not allowed: it is reserved "
                "for Kubernetes or ucp's own identities",
            )
        if mirror.source.labels and mirror.targets.name:
            message = (
                "copies of several objects can't have the same name: select the source by 'name'"
            )
            yield Problem((*at, "targets", "name"), f"{shown(at)}: {message}")


def find_bad_clusters(spec: Spec) -> Iterator[Problem]:
    """Keys of clusters that belong to another provider."""
    yield from _bad_cluster(spec.core, ("spec", "core"))
    for index, name in enumerate(spec.core.adopt):
        if name in spec.core.adopt[:index]:
            yield Problem(
                ("spec", "core", "adopt", index), f"duplicate component '{name}' in adopt"
            )
    for index, each in enumerate(spec.environments):
        yield from _bad_cluster(each.cluster, ("spec", "environments", index, "cluster"))


def _bad_cluster(cluster: AppCluster | CoreCluster, at: Loc) -> Iterator[Problem]:
    info = PROVIDERS[cluster.provider]
    if info.adopts and not cluster.context:
        yield Problem(at, f"{shown(at)} requires the key 'context' (a context of your kubeconfig)")
    for key in type(cluster).model_fields.keys() - _EVERYWHERE:
        if getattr(cluster, key) and key not in info.keys:
            providers = [name for name, each in PROVIDERS.items() if key in each.keys]
            yield Problem(
                (*at, key),
                f"{shown(at)}: '{key}' is valid for provider {' or '.join(providers)} only",
            )
    zones = getattr(cluster, "zones", None)
    if zones and zones[0] == zones[1]:
        yield Problem((*at, "zones"), f"{shown(at)}: 'zones' requires two different zones")
    if info.adopts and cluster.version:
        yield Problem(
            (*at, "version"), f"{shown(at)}: 'version' can't be set for an existing cluster"
        )


def find_bad_credentials(spec: Spec) -> Iterator[Problem]:
    """Credentials with several sources, misspelled names, and clouds' credentials used for git."""
    used = {spec.git.auth, spec.git.read_auth}
    used |= {each.auth for each in spec.apps}
    used |= {each.chart.auth for each in spec.apps if each.chart}
    for name, source in spec.credentials:
        at: Loc = ("spec", "credentials", name)
        if source is not None and len(source.model_fields_set - {"project"}) > 1:
            yield Problem(
                at, f"{shown(at)} requires exactly one of the keys file, env, onepassword"
            )
        if name not in (*CLOUDS, *used) and (near := nearest(name, CLOUDS)):
            # Other unused credentials may be for a future app (`ucp app add --auth`).
            message = f"did you mean '{near}'? it is not used"
            yield Problem(at, f"{shown(at)}: {message}", on_key=True)
    for index, app in enumerate(spec.apps):
        for at, named in (
            (("spec", "apps", index, "auth"), app.auth),
            (("spec", "apps", index, "chart", "auth"), app.chart.auth if app.chart else None),
        ):
            if named in CLOUDS:
                yield Problem(
                    at, f"{shown(at)}: '{named}' is the credential of a cloud; use a separate one"
                )
    for key, named in (("auth", spec.git.auth), ("readAuth", spec.git.read_auth)):
        if named is not None:
            yield from _bad_git_credential(spec, ("spec", "git", key), named)


def find_bad_checks(checks: Checks) -> Iterator[Problem]:
    """Findings that can't be ignored, and entries that would ignore a rule everywhere."""
    for index, entry in enumerate(checks.ignore):
        at: Loc = ("spec", "checks", "ignore", index)
        rule = RULES[entry.rule]
        if rule.ignorable == "never":
            yield Problem(
                (*at, "rule"), f"{shown(at)}: {rule.id} can't be ignored: {rule.fix} ({rule.page})"
            )
        if not entry.app and not entry.file:
            yield Problem(at, f"{shown(at)} requires the key 'app' or 'file'")


def _bad_git_credential(spec: Spec, at: Loc, named: str) -> Iterator[Problem]:
    git = spec.git
    if named in CLOUDS:
        yield Problem(
            at, f"{shown(at)}: '{named}' is the credential of a cloud; use a separate one for git"
        )
    if git.provider == "local":
        yield Problem(at, f"{shown(at)}: local repositories do not use credentials")
    for key, url in (("core", git.core), ("apps", git.apps)):
        if url and not url.lower().startswith(("http://", "https://")):
            message = f"{url} is not an http(s) URL: remove the key, SSH uses its own keys"
            yield Problem(at, f"{shown(at)}: spec.git.{key} {message}")

"""Stages: what kwok does to the objects of a cluster, in a file that it reads when it starts.

Concatenates texts and parses no YAML, since the process monitor imports it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.workspace import write_private_file

GATEWAY_VERSION = "gateway.networking.k8s.io/v1"
"""The API version that has the kinds of the Gateway API."""

_SEPARATOR = "\n---\n"
_KIND = re.compile(r"resourceRef: \{apiGroup: gateway\.networking\.k8s\.io/v1, kind: (\w+)\}")


def write_stages(folder: ClusterFolder, kinds: Collection[str] | None) -> bool:
    """Write the stages if they are not up to date; returns whether it did.

    kinds: of the Gateway API, as the API server has them; None if it can't be asked now.
    """
    wanted, written = _wanted(folder, kinds), _written(folder)
    if wanted != written:
        write_private_file(folder.stages, wanted)
    return wanted != written


def outdated(folder: ClusterFolder, kinds: Collection[str] | None) -> bool:
    """Whether the stages are not up to date. kinds: as in write_stages."""
    return _wanted(folder, kinds) != _written(folder)


def stages(kinds: Collection[str]) -> str:
    """Content of the file for a cluster with these kinds of the Gateway API."""
    return _SEPARATOR.join(
        [
            _shipped("stages.yaml"),
            *(
                stage
                for stage in _shipped("stages_gateway.yaml").split(_SEPARATOR)
                if set(_KIND.findall(stage)) <= set(kinds)
            ),
        ]
    )


def _wanted(folder: ClusterFolder, kinds: Collection[str] | None) -> str:
    return stages(_KIND.findall(_written(folder)) if kinds is None else kinds)


def _written(folder: ClusterFolder) -> str:
    try:
        return folder.stages.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _shipped(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8").rstrip("\n")

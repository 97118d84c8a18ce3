"""Stages: what kwok does to the objects of a cluster, in a file that it reads when it starts.

Light on purpose, as the folder: texts are put together, nothing is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.workspace import write_private_file

GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
"""Where the API server tells which kinds of the Gateway API it has."""

_SEPARATOR = "\n---\n"
_KIND = re.compile(r"resourceRef: \{apiGroup: gateway\.networking\.k8s\.io/v1, kind: (\w+)\}")


def write_stages(folder: ClusterFolder, kinds: Collection[str] | None) -> bool:
    """Write the stages where they aren't as they should be; returns whether.

    kinds: of the Gateway API, as the API server has them; None where it can't be asked now.
    """
    wanted, written = _wanted(folder, kinds), _written(folder)
    if wanted != written:
        write_private_file(folder.stages, wanted)
    return wanted != written


def outdated(folder: ClusterFolder, kinds: Collection[str] | None) -> bool:
    """The stages aren't as they should be. kinds: as in write_stages."""
    return _wanted(folder, kinds) != _written(folder)


def stages(kinds: Collection[str]) -> str:
    """The file for a cluster with these kinds of the Gateway API."""
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

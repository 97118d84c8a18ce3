"""Vendors the add-ons' charts as manifests in the core repository, so that git is what runs.

Helm renders each chart with its values from the repository, once for each kind of cluster that it
runs on. Charts that generate new content at every render (a password, a certificate) are rejected:
it would stay in git, and differ at the next render.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import fast_forward, make_clone
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import RefUpdate
from k8s_ucp.gitops.manifests.helm import HelmFailed, template, values_from
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.gitops.render.values import addons
from k8s_ucp.gitops.render.values.addons import Addon

if TYPE_CHECKING:
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.topology import Topology
    from k8s_ucp.workspace import GitopsFolder

CHART_SECONDS = 180.0
"""Timeout for fetching and rendering one chart."""
_VENDORED = re.compile(r"platform/[^/]+/vendored/[^/]+/manifests\.yaml")
_HEADER = b"# Rendered by k8s-ucp (`ucp render --vendor`) from "


class ChartFailed(UcpError):
    """Helm can't fetch or render a chart, or its output can't be committed."""


@dataclass(frozen=True)
class _ChartRender:
    """One render: target folder, values file, and the parameters that differ between clusters."""

    folder: str
    values: str
    parameters: tuple[tuple[str, str], ...] = ()


def vendor(
    topology: Topology,
    core: Mapping[str, bytes],
    helm: Path,
    *,
    on_progress: Callable[[str], None],
    chosen: Iterable[Addon] | None = None,
) -> dict[str, bytes]:
    """Manifests of the add-ons that the topology enables, by path in the core repository.

    core: the files of its render, for the values. on_progress: called before each chart is fetched.
    Raises ChartFailed, ProgramMissing.
    """
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="ucp-charts-") as name:
        work = Path(name)
        for addon in addons.chosen(topology) if chosen is None else chosen:
            for render in _chart_renders(topology, addon):
                on_progress(f"{addon.chart} {addon.version} ({render.folder})")
                path = f"platform/{addon.name}/vendored/{render.folder}/manifests.yaml"
                found[path] = _render(addon, render, core[render.values], helm, work)
    return found


def changes(
    tip: Mapping[str, bytes], before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> dict[str, bytes | None]:
    """What to commit on a tip to replace charts by manifests. Raises UcpError.

    before, after: the core repository as rendered without and with the manifests. Raises UcpError
    rather than overwrite files that users edited.
    """
    wanted = {path: text for path, text in after.items() if text != before.get(path)}
    edited = [
        path
        for path in wanted
        if path in before and tip.get(path) not in (before[path], after[path])
    ]
    if edited:
        raise UcpError(
            "edits would be lost: the repository differs from the rendered files in "
            f"{', '.join(sorted(edited))}",
            next="update the repository with ucp start; then edit the charts by hand",
        )
    deleted = [
        path
        for path, text in tip.items()
        if path not in after and _VENDORED.fullmatch(path) and text.startswith(_HEADER)
    ]
    found: dict[str, bytes | None] = {
        path: text for path, text in wanted.items() if tip.get(path) != text
    }
    return {**found, **dict.fromkeys(deleted)}


def _chart_renders(topology: Topology, addon: Addon) -> Iterator[_ChartRender]:
    """Add-ons with parameters are rendered for each cluster, others for each provider."""

    def values(provider: str) -> str:
        return f"platform/{addon.name}/values/{provider}.yaml"

    if not addon.parameters:
        for provider in addons.targets(topology, addon):
            yield _ChartRender(provider, values(provider))
        return
    if addons.on_core(topology, addon):
        parameters = addons.parameters(topology, addon, addons.CORE)
        yield _ChartRender(addons.CORE, values(topology.spec.core.provider), tuple(parameters))
    for each in topology.spec.environments:
        parameters = addons.parameters(topology, addon, each.name)
        yield _ChartRender(each.name, values(each.cluster.provider), tuple(parameters))


def _render(addon: Addon, render: _ChartRender, values: bytes, helm: Path, work: Path) -> bytes:
    file = work / "values.yaml"
    file.write_bytes(values)
    chart = f"oci://{addon.repository}/{addon.chart}" if addon.oci else addon.chart
    options = [
        *(() if addon.oci else ("--repo", addon.repository)),
        *("--version", addon.version, "--namespace", addon.namespace),
        *("--include-crds", *values_from(file)),
    ]
    for name, value in render.parameters:
        options += ["--set-string", f"{name}={value}"]
    what = f"the chart {addon.chart} {addon.version} of {addon.repository}"
    try:
        first, second = (
            template(helm, addon.name, chart, options, home=work, timeout=CHART_SECONDS)
            for _ in range(2)
        )
    except HelmFailed as error:
        raise ChartFailed(
            f"{what}: {error.message}",
            next="use ucp render without --vendor: Argo CD then renders the charts",
        ) from error
    if first != second:
        raise ChartFailed(
            f"{what} renders differently each time, because it generates passwords or certificates",
            next=f"set them in platform/{addon.name}/values, or let Argo CD render the chart",
        )
    return _HEADER + f"{what}.\n{first}".encode()


def commit(
    topology: Topology,
    folder: GitopsFolder,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    credential: Credential | None,
) -> list[str]:
    """Commit the manifests to the core repository and push: the changed paths.

    Raises UcpError if users edited affected files, or if there is no repository.
    """
    branch = topology.spec.git.branch
    url = addresses(topology, folder).core
    clone = make_clone(folder.core, url, branch=branch, credential=credential)

    def attempt(_: int) -> list[str]:
        clone.fetch()
        tip = clone.resolve(f"origin/{branch}")
        if tip is None:
            raise UcpError(f"the branch {branch} does not exist in {url}", next="ucp start")
        if wanted := changes(clone.read(tip), before, after):
            made = clone.write_commit(message, wanted, parent=tip)
            clone.push([RefUpdate(f"refs/heads/{branch}", made)])
        return sorted(wanted)

    message = f"Vendor the add-ons of {topology.name}\n\nCharts become manifests: ucp render.\n"
    if changed := push_until_accepted(attempt):
        fast_forward(clone, branch=branch)
    return changed

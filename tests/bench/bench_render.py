"""500 apps on two environments, rendered and checked, and `kustomize build` of each overlay."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from k8s_ucp.gitops.check.repositories import check_rendered
from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import Rendered, RenderInputs, render
from k8s_ucp.tools.installer import Installer
from k8s_ucp.topology import App, Environment, Metadata, Spec, Topology
from k8s_ucp.workspace import cache_folder
from tests.evidence import table, write

APPS, GOAL = 500, 0.3
FACTS = RenderInputs(
    machine="0123456789abcdef",
    core_url="https://git.example.org/core.git",
    apps_url="https://git.example.org/apps.git",
    topology_file=b"apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: big}\n",
)


def topology(tag: str = "1.0") -> Topology:
    """500 apps with hosts. tag: of the first app."""
    return Topology(
        metadata=Metadata(name="big"),
        spec=Spec(
            environments=(
                Environment(name="stage"),
                Environment(name="prod", promotes_from="stage"),
            ),
            apps=tuple(
                App(
                    name=f"app-{number}",
                    image=f"registry.example.org/app-{number}",
                    tag=tag if number == 0 else "1.0",
                    hosts=(f"app-{number}",),
                )
                for number in range(APPS)
            ),
        ),
    )


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/render.md."""
    kustomize = Installer(cache_folder(), lambda _: None).install(["kustomize"]).path("kustomize")
    rows, ratios = [], []
    for number in range(min(rounds, 3)):
        began = time.perf_counter()
        rendered = render(topology(), FACTS)
        middle = time.perf_counter()
        found = check_rendered(kustomize, rendered).findings
        ours = time.perf_counter() - began
        assert not found, found[:3]
        theirs = _sequential(kustomize, rendered)
        ratios.append(ours / theirs)
        times = (f"{middle - began:.1f}", f"{ours:.1f}", f"{theirs:.1f}", f"{ratios[-1]:.2f}")
        rows.append((number + 1, *times))
        print(rows[-1], flush=True)
    columns = ["round", "render s", "render and check s", "kustomize one by one s", "ratio"]
    write(
        "render",
        "Rendering and checking many apps",
        {
            f"{APPS} apps on 2 environments (goal: ratio at most {GOAL:g})": table(columns, rows)
            + f"\n\nMedian ratio {statistics.median(ratios):.2f}.",
            "A change of one app": _one_app(),
        },
        command="make bench ARGS=render",
    )


def _sequential(kustomize: Path, rendered: Rendered) -> float:
    """Seconds for `kustomize build` of each overlay, one after another."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        render_to(folder, rendered)
        overlays = sorted((folder / "apps" / "apps").glob("*/overlays/*"))
        assert len(overlays) == 2 * APPS
        began = time.perf_counter()
        for each in overlays:
            build(kustomize, each)
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder)


def _one_app() -> str:
    before = render(topology(), FACTS)
    after = render(topology("2.0"), replace(FACTS))
    changed = [path for path in before.apps if before.apps[path] != after.apps[path]]
    assert changed and all(path.startswith("apps/app-0/") for path in changed), changed
    assert before.core == after.core
    return f"{len(changed)} of {len(before.apps) + len(before.core)} files differ: " + ", ".join(
        f"`{each}`" for each in sorted(changed)
    )

"""Apps in the forms that users have: added, promoted, rolled back and removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import make_world
from tests.e2e.corpus import SHAPES
from tests.e2e.corpus.shape import Shape
from tests.e2e.corpus.sources import sources
from tests.e2e.corpus.trial import Trial
from tests.e2e.world import Workbench
from tests.evidence import table, write

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

QUICK = [each for each in SHAPES if each.quick]
AT_ONCE = 11
"""Number of shapes that are on the topology together, in the soak."""
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - {name: stage, cluster: {provider: embedded}}
    - {name: prod, cluster: {provider: embedded}, promotesFrom: stage}
  addons: {argo-rollouts: true}
"""

on_the_shared_topology = pytest.mark.parametrize("demo", ["embedded"], indirect=True)


@pytest.fixture(scope="module")
def tried(demo: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """All quick shapes, after all steps of an app's life."""
    if not demo.status()["core"]["ready"]:
        demo.ucp("start", "--yes")
    with sources(tmp_path_factory.mktemp("corpus"), QUICK) as served:
        trial = Trial(demo, served, QUICK)
        # The soak looks for traces: tests of other files use this topology, too.
        trial.run(traces=False)
        yield trial


@on_the_shared_topology
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shape", QUICK, ids=lambda each: each.name)
def test_app_of_every_quick_shape_is_added_promoted_rolled_back_and_removed(
    tried: Trial, shape: Shape
) -> None:
    assert shape.name not in tried.failures, tried.failures[shape.name]


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_app_of_every_shape_is_added_promoted_rolled_back_and_removed(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    failures: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for world in make_world("corpus", watched=False):
        (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
        world.ucp("start", "--yes", timeout=600)
        with sources(tmp_path, SHAPES) as served:
            for first in range(0, len(SHAPES), AT_ONCE):
                trial = Trial(world, served, SHAPES[first : first + AT_ONCE])
                trial.run()
                failures |= trial.failures
                for step, took in trial.seconds.items():
                    seconds[step] = seconds.get(step, 0) + took
    tell(failures, seconds)
    assert not failures, "\n".join(f"{name}: {words}" for name, words in failures.items())


def tell(failures: dict[str, str], seconds: dict[str, float]) -> None:
    rows = [
        (
            each.name,
            each.about,
            {"folder": "folder", "git": "git repository"}.get(each.source, f"{each.source} chart"),
            "failed" if each.name in failures else "as wanted",
        )
        for each in SHAPES
    ]
    steps = [(step, f"{took:.0f}") for step, took in seconds.items()]
    write(
        "apps",
        "Apps that people bring",
        {
            "What was done with each": (
                "`ucp app add`; Synced and Healthy with its images on stage and prod; promoted to "
                "stage, then from stage to prod; rolled back on prod; `ucp app remove`. Afterwards "
                "ucp.yaml, the trees of both repositories and of their clones, and every object of "
                "the core cluster and of both app clusters are as before."
            ),
            "Shapes": table(["name", "what it is", "from", "result"], rows),
            "Seconds by step, all shapes together": table(["step", "seconds"], steps),
        },
        command="make soak",
    )

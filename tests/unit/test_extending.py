"""The examples of docs/extending.md work in the places that the page names."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from k8s_ucp import clouds, credentials, plans, providers
from k8s_ucp.cli import main
from k8s_ucp.components.pods import pod_components
from k8s_ucp.context import StartContext
from k8s_ucp.engine import pipeline
from k8s_ucp.engine.pipeline import Task
from k8s_ucp.engine.waiting import Cancel
from k8s_ucp.gitops.render import repositories
from k8s_ucp.gitops.render.values import addons
from k8s_ucp.reconciler.access.sources import cluster_provider
from k8s_ucp.steps.startup.start_in_pods import start_pods
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace
from tests import fifth_provider
from tests.unit.gitops.topologies import FACTS, demo

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/extending.md").read_text("utf-8")


def shown(place: str, words: str = "") -> str:
    """The code block whose first line names the place. words: selects one of several blocks."""
    found = re.findall(rf"```\w+\n# {re.escape(place)}\n(.*?)```", PAGE, re.DOTALL)
    (block,) = [each for each in found if words in each]
    return str(block)


def module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a module with this text, as if it were in the package."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def context(folder: Path) -> StartContext:
    return StartContext(workspace=Workspace.at(folder), topology=default(environments=()))


def test_the_example_provider_is_the_one_that_passes_the_contract_suite() -> None:
    source = Path(fifth_provider.__file__).read_text("utf-8")
    assert shown("providers.py", "playground") in source
    assert shown("clusters/playground/provider.py") in source


def test_a_cloud_and_its_cluster_provider_need_one_row_each(
    templates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, clusters = dict(clouds.CLOUDS), dict(providers.PROVIDERS)
    exec(shown("clouds.py"), {**vars(clouds), "CLOUDS": rows})
    exec(shown("providers.py", "nimbus"), {**vars(providers), "PROVIDERS": clusters})
    monkeypatch.setitem(clouds.CLOUDS, "nimbus", rows["nimbus"])
    monkeypatch.setitem(providers.PROVIDERS, "nke", clusters["nke"])
    base = templates / "core/clusters/base"
    shutil.copytree(base / "digitalocean", base / "nke")
    stage = {"name": "stage", "cluster": {"provider": "nke", "size": "large"}}
    found = demo(environments=[stage], credentials={"nimbus": {"env": "NIMBUS"}})
    files = {path: text.decode() for path, text in repositories.render(found, FACTS).core.items()}
    overlay = files["clusters/overlays/stage/kustomization.yaml"]
    assert "/spec/forProvider/size" in overlay and "north-1" in overlay
    assert "provider-nimbus:v0.1.0" in files["providers/nimbus/providers.yaml"]
    assert "name: nimbus-creds" in files["providers/nimbus/config.yaml"]
    assert "kubernetes.nimbus.m.crossplane.io" in files["platform/reconciler/access.yaml"]
    assert cluster_provider("kubernetes.nimbus.m.crossplane.io/v1", "Cluster") == "nke"
    assert credentials.credential_ref(found, Workspace.at(templates), "nimbus").variable == "NIMBUS"
    assert clouds.CLOUDS["nimbus"].credential.expected == "JSON with key"


def test_a_step_needs_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = module(tmp_path, "note_start", shown("steps/startup/note_start.py"), monkeypatch)
    line = shown("plans.py", "note_start")
    task = eval(line, {"Task": Task, "note_start": steps.note_start})
    whole = plans.start(default())
    assert replace(whole, tasks=(*whole.tasks, task)).tasks[-1].step.id == "note-start"
    here = context(tmp_path)
    for _ in range(2):
        pipeline.run(
            pipeline.Plan("start", (replace(task, after=()),)),
            here,
            cancel=Cancel(),
            on_event=lambda _: None,
        )
    assert (here.state.root / "noted").exists()


def test_a_command_needs_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = module(tmp_path, "where", shown("cli/inspection/where.py"), monkeypatch)
    monkeypatch.setitem(sys.modules, "k8s_ucp.cli.inspection.where", written)
    table = dict(main.COMMANDS)
    exec(shown("cli/main.py"), {"COMMANDS": table, "CommandEntry": main.CommandEntry})
    monkeypatch.setitem(main.COMMANDS, "where", table["where"])
    assert main.run(["--help"]) == 0
    assert "Print the folder of the workspace." in capsys.readouterr().out
    assert main.run(["--workspace", str(tmp_path), "where"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path)


class Cluster:
    """An API server with one Deployment, which is rolled out."""

    def find(self, kind: Any, name: str, namespace: str) -> dict[str, Any]:
        assert (kind.kind, name, namespace) == ("Deployment", "podinfo", "demo-podinfo")
        return {
            "kind": kind.kind,
            "metadata": {"generation": 1},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 1,
                "replicas": 1,
                "updatedReplicas": 1,
                "readyReplicas": 1,
                "availableReplicas": 1,
            },
        }


def test_a_component_needs_one_row_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dict(pod_components.ENTRIES)
    exec(shown("components/pods/pod_components.py"), {**vars(pod_components), "ENTRIES": table})
    monkeypatch.setitem(pod_components.ENTRIES, "podinfo", table["podinfo"])
    line = shown("plans.py", "start_pods")
    task = eval(line, {"Task": Task, "start_pods": start_pods})
    assert (task.step.id, task.step.title) == ("start-podinfo", "Start podinfo")
    whole = plans.start(default())
    assert replace(whole, tasks=(*whole.tasks, task))
    here = context(tmp_path)
    vars(here)["kube"] = cast(Any, Cluster())
    assert here.pod_component("podinfo").ready().ready


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the templates to which a test can add files."""
    copy = tmp_path / "templates"
    shutil.copytree(repositories.templates_folder(), copy)
    monkeypatch.setattr(repositories, "templates_folder", lambda: copy)
    repositories._sources.cache_clear()
    yield copy
    repositories._sources.cache_clear()


def test_an_add_on_needs_one_row_and_its_values(
    templates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = eval(shown("gitops/render/values/addons.py"), {"Addon": addons.Addon})
    monkeypatch.setattr(addons, "ALL", (*addons.ALL, row))
    (place,) = re.findall(r"^# templates/(core/platform/podinfo/.*)$", PAGE, re.MULTILINE)
    file = templates / place
    file.parent.mkdir(parents=True)
    file.write_text(shown(f"templates/{place}"))
    with_it = demo(addons={"velero": True})
    files = repositories.render(with_it, FACTS).core
    assert "replicaCount: 1" in files["platform/podinfo/values/embedded.yaml"].decode()
    assert "6.9.2" in files["bootstrap/embedded/podinfo.yaml"].decode()
    assert not [each for each in repositories.render(demo(), FACTS).core if "podinfo" in each]

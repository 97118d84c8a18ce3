"""Which CRDs of a datastore may seed other clusters, and which seeds may be deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cluster_provider import Seed
from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import programs
from k8s_ucp.clusters.embedded.cached import definition
from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.components.manifests import written
from k8s_ucp.kube import FIELD_MANAGER
from k8s_ucp.steps.startup.seed import ENGINES, TOOLS, keep_seed, key, prune_seeds, settled
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import MODULES, ProgramSource, ways
from k8s_ucp.tools.store import StoreEntry, ToolStore
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import default


def stored(conditions: Mapping[str, str], managers: list[str], **metadata: Any) -> dict[str, str]:
    found = {
        "metadata": {"managedFields": [{"manager": each} for each in managers], **metadata},
        "status": {
            "conditions": [{"type": type, "status": said} for type, said in conditions.items()]
        },
    }
    return {"widgets.example.org": json.dumps(found)}


NAMES = ["widgets.example.org"]
WELL = {"NamesAccepted": "True", "Established": "True"}
OURS = [FIELD_MANAGER, "kube-apiserver"]


def test_crds_written_only_by_the_start_can_be_a_seed() -> None:
    assert settled(stored(WELL, OURS), NAMES)


@pytest.mark.parametrize(
    "kinds",
    [
        {},
        stored({"Established": "False"}, OURS),
        stored({}, OURS),
        stored(WELL, [*OURS, "argocd-controller"]),
        stored(WELL, OURS, deletionTimestamp="2026-01-01T00:00:00Z"),
        stored(WELL, OURS, ownerReferences=[{"kind": "ProviderRevision"}]),
    ],
)
def test_missing_unestablished_or_foreign_crds_cannot_be_a_seed(kinds: Mapping[str, str]) -> None:
    assert not settled(kinds, NAMES)


def test_a_crd_that_the_start_did_not_apply_cannot_be_a_seed() -> None:
    assert not settled(stored(WELL, OURS), [])


def installed(cache: Path) -> Toolbox:
    """Tools on which the CRDs depend, in the versions of the shipped catalogue, as empty files."""
    store = ToolStore(cache)
    store.make()
    for tool in TOOLS:
        recipe = ways(CATALOGUE[tool], ProgramSource.SOURCES, MODULES)[0]
        name = recipe.entry_name(None)
        partial = store.new_partial(name, lambda _: None)
        (partial / "bin").mkdir()
        for program in recipe.programs:
            (partial / "bin" / program).touch(0o755)
        programs = dict.fromkeys(recipe.programs, "")
        entry = StoreEntry(
            name, tool, "1", recipe.digest, "", 1.0, programs, keeps_module=tool in ENGINES
        )
        store.publish(entry, partial)
    return Installer(cache, lambda _: None).find(TOOLS)


def test_seeds_for_installed_programs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_ucp.tools.installer.find_compiler", lambda _: None)
    toolbox = installed(tmp_path)
    version = f"v{toolbox.version('kubernetes')}"
    of_others = key(
        Toolbox({**toolbox.programs, "etcd": Path("/etcd-0/bin/etcd")}, toolbox.modules),
        simulated=False,
    )
    wanted = [key(toolbox, simulated=each) for each in (False, True)]
    for each in (*wanted, of_others):
        seeds.keep(tmp_path, each, Seed("digest", {}))
    definitions = {
        name: definition.key_of_all({**programs.find(toolbox), **other}, version, Parameters.gogc)
        for name, other in (("ours", {}), ("others", {"etcd": Path("/etcd-0/bin/etcd")}))
    }
    for each in definitions.values():
        seeds.keep_objects(tmp_path, each, {"kwok.yaml": ""})
    assert prune_seeds(tmp_path) == sorted(
        f"seeds/{each}.json" for each in (of_others, definitions["others"])
    )
    assert all(seeds.find(tmp_path, each) for each in wanted)
    assert seeds.find_objects(tmp_path, definitions["ours"])


DEFINITIONS = {"api/postgres/definition.yaml": b"a: 1", "api/postgres/aws.yaml": b"b: 1"}
KINDS = {"platform/reconciler/widgets.yaml": b"c: 1"}


@pytest.mark.parametrize(
    ("edited", "kept"),
    [
        ({}, True),
        ({"api/postgres/aws.yaml": b"b: 2"}, True),
        ({"api/more/definition.yaml": b"d: 1"}, True),
        ({"api/postgres/definition.yaml": b"a: 2"}, False),
        ({"platform/reconciler/widgets.yaml": b"c: 2"}, False),
    ],
)
def test_a_seed_is_cached_unless_users_changed_its_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: dict[str, bytes], kept: bool
) -> None:
    monkeypatch.setattr("k8s_ucp.tools.installer.find_compiler", lambda _: None)
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path))
    files = {**DEFINITIONS, **KINDS}
    clone = SimpleNamespace(read=lambda ref, *under: files)
    context: Any = SimpleNamespace(
        provider=SimpleNamespace(
            info=SimpleNamespace(takes_seed=True), stored_crds=lambda name: stored(WELL, OURS)
        ),
        published=SimpleNamespace(
            core=SimpleNamespace(clone=clone, read=lambda *under: files | edited)
        ),
        # A real cloud: its definitions are in the repository, its CRDs are created later.
        topology=default(),
        toolbox=installed(tmp_path),
    )
    widgets = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": NAMES[0]}}
    keep_seed(context, [written(widgets, *KINDS)])
    file = tmp_path / "seeds" / f"{key(context.toolbox, simulated=False)}.json"
    assert file.exists() == kept

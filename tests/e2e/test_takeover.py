"""A workspace that an earlier version made and that runs: `ucp start` takes it over as it is."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from k8s_ucp.kube import DEPLOYMENT, SECRET, Object
from tests.e2e.test_faults import well
from tests.e2e.test_mirrors import SYNCER, connection, password
from tests.e2e.wheels import install_wheel
from tests.e2e.world import UCP, World, until

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "Restart Docker for all workers at once in tests, run again what a stalled machine fails"
"""The last commit before the modules moved: hooks, programs and state name the old ones."""
EDIT = "commonAnnotations: {edited: by-hand}\n"


def source_of(subject: str, folder: Path) -> Path:
    """The files of the commit with this subject."""

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", "-C", ROOT, *words], check=True, capture_output=True
        ).stdout.strip()

    found = git("log", "--format=%H", "--fixed-strings", f"--grep={subject}").decode().split()
    if not found:
        pytest.skip("this checkout has no history to take the earlier version from")
    archive = folder / "earlier.tar"
    git("archive", "-o", str(archive), found[-1])
    with tarfile.open(archive) as files:
        files.extractall(folder / "earlier", filter="data")
    return folder / "earlier"


@pytest.mark.timeout(600)
def test_a_workspace_of_the_version_before_is_taken_over(world: World, tmp_path: Path) -> None:
    install_wheel(world, tmp_path, source_of(BEFORE, tmp_path))
    world.ucp("start", "--yes")
    world.kube("core").create(connection("first"))
    with world.commit("core", "Mirror the quotes' database") as clone:
        (clone / "mirrors/db.yaml").write_text(SYNCER)
    with world.commit("apps", "Edit by hand") as clone:
        (clone / "notes.md").write_text("by hand\n")
        overlay = clone / "apps/echo/overlays/stage/kustomization.yaml"
        overlay.write_text(overlay.read_text() + EDIT)
    until("stage has the copy", lambda: password(world, "stage") == "first")
    before = until("the edit is deployed", lambda: edited(world))
    ids, secret = world.uids(), registration(world)

    world.command = UCP
    del world.environment["PATH"]
    world.ucp("start", "--yes")
    until("well after", lambda: well(world))
    assert world.uids() == ids
    assert registration(world) == secret
    after = edited(world)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert password(world, "stage") == "first"
    assert "by hand" in world.git(world.gitops / "apps.git", "show", "main:notes.md")
    # What the earlier version installed into the repositories and the supervisor works on.
    world.kube("core").apply(connection("second"), manager="test")
    until("prod follows", lambda: password(world, "prod") == "second")
    with world.commit("apps", "Take the edit back") as clone:
        overlay = clone / "apps/echo/overlays/stage/kustomization.yaml"
        overlay.write_text(overlay.read_text().replace(EDIT, ""))
    until("a push still arrives", lambda: edited(world) is None)
    world.ucp("stop", "--yes")
    assert world.processes() == []


def registration(world: World) -> str:
    """Of the cluster as Argo CD knows it: the identity of its Secret."""
    return str(world.kube("core").get(SECRET, "cluster-demo-stage", "argocd")["metadata"]["uid"])


def edited(world: World) -> Object | None:
    """The app's Deployment where it carries the edit by hand."""
    found = world.kube("stage").get(DEPLOYMENT, "echo", "echo")
    return found if "edited" in found["metadata"].get("annotations", {}) else None

"""A running workspace of an earlier version: `ucp start` of this version takes it over unchanged.

In the conditions of users: in a path with a space, beside another topology, as an ordinary user,
installed from wheels.
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest

from k8s_ucp.kube import DEPLOYMENT, SECRET, Object
from k8s_ucp.tools.catalogue import CATALOGUE
from tests.conftest import CACHE
from tests.e2e.earlier_ucp import BEFORE, ROOT, source_of
from tests.e2e.embedded_topology import well
from tests.e2e.mirrored_secret import SYNCER, connection, password
from tests.e2e.wheels import install_wheel
from tests.e2e.world import Workbench, until

EDIT = "commonAnnotations: {edited: by-hand}\n"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_running_workspace_of_an_earlier_version_is_taken_over(
    reader: Workbench, world: Workbench, tmp_path: Path
) -> None:
    assert " " in str(world.workspace)
    install_wheel(world, "before", source_of(BEFORE, tmp_path))
    user = become_nobody(world) if os.getuid() == 0 else os.getuid()
    world.ucp("start", "--yes", timeout=600)
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

    install_wheel(world, "now", ROOT)
    world.ucp("start", "--yes", timeout=600)
    until("well after", lambda: well(world))
    assert world.uids() == ids
    assert registration(world) == secret
    after = edited(world)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert password(world, "stage") == "first"
    assert "by hand" in world.git(world.gitops / "apps.git", "show", "main:notes.md")
    # Hooks and programs that the earlier version installed still work.
    world.kube("core").apply(connection("second"), manager="test")
    until("prod follows", lambda: password(world, "prod") == "second")
    with world.commit("apps", "Take the edit back") as clone:
        overlay = clone / "apps/echo/overlays/stage/kustomization.yaml"
        overlay.write_text(overlay.read_text().replace(EDIT, ""))
    until("a push still arrives", lambda: edited(world) is None)

    assert {process.uids().real for process in world.processes()} == {user}
    until("its apps are well", lambda: healthy_apps(world) == 2)
    assert healthy_apps(reader) == 2
    world.ucp("stop", "--yes")
    until("nothing is left", lambda: world.processes() == [])
    assert healthy_apps(reader) == 2


def healthy_apps(world: Workbench) -> int:
    return sum(
        (each["sync"], each["health"]) == ("Synced", "Healthy")
        for each in world.status()["applications"]
        if each["app"] == "echo"
    )


def become_nobody(world: Workbench) -> int:
    """Give everything in this workspace to an ordinary user, who runs the commands.

    The user is nobody, with a copy of the built programs and no access to anything else.
    """
    nobody = pwd.getpwnam("nobody")
    base = world.home.parent
    base.chmod(0o755)
    cache = base / "cache"
    shutil.copytree(CACHE, cache, symlinks=True, ignore=not_copied)
    for folder in (world.home, world.workspace, cache):
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    world.environment["UCP_CACHE_DIR"] = str(cache)
    world.as_user = (
        "setpriv",
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        # The interpreter may be in root's home: it may be read but not written.
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    )
    return nobody.pw_uid


def not_copied(folder: str, names: list[str]) -> set[str]:
    """What tests build in the cache, and versions that tests of upgrades invent meanwhile."""
    if Path(folder) != CACHE / "tools":
        return {"build", "tests"} & {*names}
    return {
        each
        for each in names
        for tool in ("crossplane", "kubernetes")
        if each.startswith(f"{tool}-") and not each.startswith(f"{tool}-{CATALOGUE[tool].version}-")
    }


def registration(world: Workbench) -> str:
    """UID of the cluster's Secret in Argo CD."""
    return str(world.kube("core").get(SECRET, "cluster-demo-stage", "argocd")["metadata"]["uid"])


def edited(world: Workbench) -> Object | None:
    """The app's Deployment if it has the edit by hand."""
    found = world.kube("stage").get(DEPLOYMENT, "echo", "echo")
    return found if "edited" in found["metadata"].get("annotations", {}) else None

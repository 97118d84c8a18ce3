"""A connection Secret of the core is mirrored to the environments, declared by git alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.kube import NAMESPACE, SECRET
from tests.e2e.mirrored_secret import SYNCER, connection, password
from tests.e2e.world import Workbench, until

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

PAGE = Path(__file__).resolve().parents[2] / "docs/mirrors.md"

pytestmark = pytest.mark.parametrize("demo", ["embedded"], indirect=True)


def test_connection_secret_is_mirrored_to_stage_and_prod_and_kept_in_sync(
    started: Workbench,
) -> None:
    core = started.kube("core")
    core.create(connection("first"))
    with started.commit("core", "Mirror the quotes' database") as clone:
        (clone / "mirrors/db.yaml").write_text(SYNCER)
    for each in ("stage", "prod"):
        until(f"{each} has it", lambda each=each: password(started, each) == "first")
    (mirror,) = until(
        "status lists it",
        lambda: [each for each in started.status()["mirrors"] if each["ready"]],
    )
    assert mirror["name"] == "db"
    assert [(each["cluster"], each["ready"]) for each in mirror["targets"]] == [
        ("demo-prod", True),
        ("demo-stage", True),
    ]
    assert "db" in started.ucp("mirror", "list").stdout
    until("git says all of it", lambda: (started.application("mirrors") or {})["sync"] == "Synced")
    core.apply(connection("second"), manager="test")
    for each in ("stage", "prod"):
        until(f"{each} follows", lambda each=each: password(started, each) == "second")


def test_copy_is_deleted_with_its_source_and_with_its_syncer(started: Workbench) -> None:
    core = started.kube("core")
    core.delete(SECRET, "quotes-conn", "crossplane-system")
    for each in ("stage", "prod"):
        until(f"{each} lets go", lambda each=each: password(started, each) is None)
    core.create(connection("third"))
    until("it comes back", lambda: password(started, "prod") == "third")
    with started.commit("core", "Stop mirroring") as clone:
        (clone / "mirrors/db.yaml").unlink()
    until("prod lets go", lambda: password(started, "prod") is None)
    until("status forgets it", lambda: not started.status()["mirrors"])


@pytest.mark.slow
def test_namespace_that_no_mirror_read_before_is_created_and_watched(started: Workbench) -> None:
    """It is created and watched as soon as a mirror names it, and doesn't block later starts."""
    started.ucp("mirror", "add", "login", "--from", "team/login", "--to", "quote")
    core = started.kube("core")
    until("Argo CD makes the namespace", lambda: core.find(NAMESPACE, "team"))
    metadata = {"name": "login", "namespace": "team"}
    core.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    prod = started.kube("prod")
    until("prod has it", lambda: prod.find(SECRET, "login", "quote"))
    started.ucp("mirror", "remove", "login")
    until("prod lets go", lambda: prod.find(SECRET, "login", "quote") is None)
    # The namespace may contain users' objects, so it stays, and Argo CD reports it.
    started.ucp("start", "--yes")
    assert core.find(SECRET, "login", "team")
    kept = "Namespace team: removed from git"
    until("the doctor says what stays", lambda: kept in started.ucp("doctor").stdout)
    core.delete(NAMESPACE, "team")
    until("nothing stays", lambda: kept not in started.ucp("doctor").stdout)


@pytest.mark.slow
def test_commands_of_the_mirrors_page_work(started: Workbench, toolbox: Toolbox) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert len(blocks) >= 4
    said = started.shell("\n".join(blocks), toolbox)
    assert "quotes-conn" in said
    with started.commit("core", "Stop mirroring logins") as clone:
        (clone / "mirrors/logins.yaml").unlink()
    until("nothing is mirrored", lambda: not started.status()["mirrors"])

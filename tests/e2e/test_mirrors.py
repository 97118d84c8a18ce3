"""A connection Secret of the core is mirrored to the environments, declared by git alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.kube import NAMESPACE, SECRET
from tests.e2e.added_environment import add_eu_to_core
from tests.e2e.mirrored_secret import SYNCER, connection, password
from tests.e2e.world import Workbench, until

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

PAGE = Path(__file__).resolve().parents[2] / "docs/mirrors.md"


def test_connection_secret_is_mirrored_to_stage_and_prod_and_kept_in_sync(
    reader: Workbench,
) -> None:
    core = reader.kube("core")
    core.create(connection("first"))
    with reader.commit("core", "Mirror the quotes' database") as clone:
        (clone / "mirrors/db.yaml").write_text(SYNCER)
    for each in ("stage", "prod"):
        until(f"{each} has it", lambda each=each: password(reader, each) == "first")
    (mirror,) = until(
        "status lists it",
        lambda: [each for each in reader.status()["mirrors"] if each["ready"]],
    )
    assert mirror["name"] == "db"
    assert [(each["cluster"], each["ready"]) for each in mirror["targets"]] == [
        ("demo-prod", True),
        ("demo-stage", True),
    ]
    assert "db" in reader.ucp("mirror", "list").stdout
    until("git says all of it", lambda: (reader.application("mirrors") or {})["sync"] == "Synced")
    core.apply(connection("second"), manager="test")
    for each in ("stage", "prod"):
        until(f"{each} follows", lambda each=each: password(reader, each) == "second")


def test_new_environment_gets_the_copy_automatically(reader: Workbench) -> None:
    with reader.commit("core", "Add the environment eu") as clone:
        add_eu_to_core(clone)
    until("eu has it", lambda: password(reader, "eu") == "second", seconds=240)


def test_copy_is_deleted_with_its_source_and_with_its_syncer(reader: Workbench) -> None:
    core = reader.kube("core")
    core.delete(SECRET, "quotes-conn", "crossplane-system")
    for each in ("stage", "prod", "eu"):
        until(f"{each} lets go", lambda each=each: password(reader, each) is None)
    core.create(connection("third"))
    until("it comes back", lambda: password(reader, "prod") == "third")
    with reader.commit("core", "Stop mirroring") as clone:
        (clone / "mirrors/db.yaml").unlink()
    until("prod lets go", lambda: password(reader, "prod") is None)
    until("status forgets it", lambda: not reader.status()["mirrors"])


def test_namespace_that_no_mirror_read_before_is_created_and_watched(reader: Workbench) -> None:
    """It is created and watched as soon as a mirror names it, and doesn't block later starts."""
    reader.ucp("mirror", "add", "login", "--from", "team/login", "--to", "quote")
    core = reader.kube("core")
    until("Argo CD makes the namespace", lambda: core.find(NAMESPACE, "team"))
    metadata = {"name": "login", "namespace": "team"}
    core.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    prod = reader.kube("prod")
    until("prod has it", lambda: prod.find(SECRET, "login", "quote"))
    reader.ucp("mirror", "remove", "login")
    until("prod lets go", lambda: prod.find(SECRET, "login", "quote") is None)
    # The namespace may contain users' objects, so it stays, and Argo CD reports it.
    reader.ucp("start", "--yes")
    assert core.find(SECRET, "login", "team")
    kept = "Namespace team: removed from git"
    until("the doctor says what stays", lambda: kept in reader.ucp("doctor").stdout)


def test_commands_of_the_mirrors_page_work(reader: Workbench, toolbox: Toolbox) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert len(blocks) >= 4
    said = reader.shell("\n".join(blocks), toolbox)
    assert "quotes-conn" in said

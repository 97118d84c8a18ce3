"""Render, merge and push with real repositories: what a rerun of start does to people's work."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.failures import Declined
from k8s_ucp.git.repository import RENDERED, RefUpdate, Repository
from k8s_ucp.gitops.publish.merge import MergeConflict, Scope
from k8s_ucp.gitops.publish.repositories import Resolutions, resolutions_from
from k8s_ucp.gitops.publish.target import PublishTarget
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.topology import App, Environment
from tests.integration.gitops.conftest import Repositories
from tests.integration.gitops.older_repositories import SETS, write_older_layout
from tests.unit.gitops.topologies import demo

STAGE = "apps/echo/overlays/stage/kustomization.yaml"
LIST = "clusters/kustomization.yaml"
EU = Environment.model_validate({"name": "eu"})
QA = Environment.model_validate({"name": "qa"})


def echo(**fields: object) -> App:
    return demo().spec.apps[0].model_copy(update=fields)


def test_first_publish_creates_both_repositories(world: Repositories) -> None:
    result = world.start()
    assert result.changed
    assert {path for path in world.files("apps") if "/overlays/" in path} == {
        f"apps/echo/overlays/{environment}/{file}.yaml"
        for environment in ("stage", "prod")
        for file in ("kustomization", "hosts")
    }
    assert result.core.environments() == ["prod", "stage"]
    for name in ("core", "apps"):
        clone = Repository(world.folder.root / name)
        assert clone.git("status", "--porcelain") == b""
        assert clone.resolve("HEAD") == clone.resolve("origin/main")
        assert clone.url() == (world.folder.root / f"{name}.git").as_uri()
        remote = Repository(world.folder.root / f"{name}.git")
        assert remote.tree_of("main") == remote.tree_of(RENDERED)
    assert (world.folder.apps / STAGE).is_file()
    assert result.core.read("projects") == {
        path: text for path, text in world.files("core").items() if path.startswith("projects/")
    }
    assert (result.core.note, result.apps.note) == (None, None)


def test_edit_that_one_repository_refuses_is_in_neither(world: Repositories) -> None:
    world.start()
    world.push("core", {"mine.yaml": b"a: 1\n"})
    before = {name: world.files(name) for name in ("core", "apps")}
    rendered = {name: id for name, id in world.refs().items() if name.endswith(RENDERED)}
    hook = world.folder.apps_remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    three = (*demo().spec.environments, EU)
    with pytest.raises(Declined):
        world.start(environments=three, whole=True)
    assert {name: world.files(name) for name in before} == before
    assert {name: id for name, id in world.refs().items() if name.endswith(RENDERED)} == rendered
    assert not (world.folder.core / "clusters" / "overlays" / "eu").exists()
    hook.unlink()
    assert not world.start().changed
    assert world.start(environments=three, whole=True).core.environments() == [
        "eu", "prod", "stage",
    ]  # fmt: skip


class Late(Repository):
    """Its host accepts a push, and responds after the timeout."""

    def push(
        self, updates: Sequence[RefUpdate], *, remote: str = "origin", timeout: float = 9
    ) -> None:
        super().push(updates, remote=remote, timeout=timeout)
        raise DeadlineExceeded("`git push`", timeout, "its host gave no answer")


def test_push_whose_response_comes_too_late_is_no_failure(world: Repositories) -> None:
    """An edit of ucp.yaml would be undone, although the repository has it."""
    world.start()
    target = PublishTarget(
        name="apps",
        clone=Late(world.folder.apps),
        files=world.rendered(demo(domain="example.com")).apps,
        branch="main",
        scope=Scope(frozenset({"stage", "prod"}), frozenset({"echo"})),
        message="Change the domain\n",
    )
    pushed = target.prepare().push()
    assert pushed.moved
    assert Repository(world.folder.apps_remote).resolve("main") == pushed.tip


def test_rerun_writes_nothing(world: Repositories) -> None:
    world.start()
    before = world.refs()
    assert not world.start().changed
    assert world.refs() == before


def test_rerun_after_a_persons_commit_writes_nothing(world: Repositories) -> None:
    world.start()
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    before = world.refs()
    result = world.start()
    assert not result.changed
    assert world.refs() == before
    assert b"0.9.3" in result.apps.read(STAGE)[STAGE]


def test_pushed_tags_and_edits_are_kept(world: Repositories) -> None:
    world.start()
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    world.edit("core", "platform/argocd/config/argocd-cm.yaml", "30s", "45s")
    world.push("core", {"platform/mine/secret-sauce.yaml": b"kind: List\n"})
    result = world.start(apps=(echo(replicas=3, tag="9.9.9"),), domain="example.com")
    assert result.changed
    stage = world.files("apps")[STAGE].decode()
    assert 'newTag: "0.9.3"' in stage
    assert "count: 3" in stage
    prod = world.files("apps")[STAGE.replace("stage", "prod")].decode()
    assert 'newTag: "0.9.2"' in prod, "no render changes a tag"
    assert b"echo.stage.example.com" in world.files("apps")["apps/echo/overlays/stage/hosts.yaml"]
    core = world.files("core")
    assert b'timeout.reconciliation: "45s"' in core["platform/argocd/config/argocd-cm.yaml"]
    assert core["platform/mine/secret-sauce.yaml"] == b"kind: List\n"
    assert not world.start(apps=(echo(replicas=3, tag="9.9.9"),), domain="example.com").changed


def test_deleted_file_stays_deleted(world: Repositories) -> None:
    world.start()
    gone = "apps/echo/overlays/prod/hosts.yaml"
    world.push("apps", {gone: None})
    world.start(domain="example.com")
    assert gone not in world.files("apps")
    world.start(domain="example.net")
    assert gone not in world.files("apps")


def test_environment_by_commit_is_kept_while_another_is_added_by_topology(
    world: Repositories,
) -> None:
    world.start()
    core, apps = world.files("core"), world.files("apps")
    overlay = core["clusters/overlays/stage/kustomization.yaml"].replace(b"stage", b"eu")
    lines = (
        core[LIST].decode().replace("  - overlays/prod\n", "  - overlays/prod\n  - overlays/eu\n")
    )
    lines = lines.replace("      - prod=\n", "      - prod=\n      - eu=\n")
    world.push("core", {"clusters/overlays/eu/kustomization.yaml": overlay, LIST: lines.encode()})
    tagged = apps[STAGE].replace(b"stage", b"eu").replace(b"0.9.2", b"1.0.0")
    listed = apps["environments.yaml"] + b"  - {name: eu, promotesFrom: prod}\n"
    eu = STAGE.replace("stage", "eu")
    world.push("apps", {eu: tagged, "environments.yaml": listed})

    more = (*demo().spec.environments, QA)
    result = world.start(environments=more)
    assert result.core.environments() == ["eu", "prod", "qa", "stage"]
    assert result.core.providers() == dict.fromkeys(["eu", "prod", "qa", "stage"], "embedded")
    text = world.files("core")[LIST].decode()
    assert [line for line in text.splitlines() if line.startswith("  - overlays/")] == [
        f"  - overlays/{each}" for each in ("stage", "prod", "qa", "eu")
    ]
    assert [line.strip() for line in text.splitlines() if line.endswith("=")] == [
        f"- {each}=" for each in ("stage", "prod", "qa", "eu")
    ]
    order = world.files("apps")["environments.yaml"].decode()
    assert "  - {name: eu, promotesFrom: prod}\n" in order
    assert order.index("qa") < order.index("eu")
    assert world.files("apps")[eu] == tagged

    adopted = (*more, EU)
    world.start(environments=adopted)
    assert world.files("apps")[eu] == tagged, "adopting an environment does not touch its tag"
    assert world.files("core")[LIST].decode() == text
    assert not world.start(environments=adopted).changed


def test_files_of_removed_entries_stay_in_the_repositories(world: Repositories) -> None:
    world.start()
    before = world.files("core"), world.files("apps")
    only = demo().spec.environments[0]
    result = world.start(environments=(only,), apps=())
    after = world.files("core"), world.files("apps")
    # Except for files that follow the topology: a removed app uses the shared project of such apps.
    follows = ("README.md", "ucp.yaml", "applications/", "projects/")
    for old, new in zip(before, after, strict=True):
        assert {path: text for path, text in new.items() if not path.startswith(follows)} == {
            path: text for path, text in old.items() if not path.startswith(follows)
        }
    assert "projects/ucp-echo.yaml" in before[0]
    assert "projects/ucp-echo.yaml" not in after[0]
    assert result.core.environments() == ["prod", "stage"]


def test_stopped_environment_is_not_deployed_and_keeps_its_overlay(world: Repositories) -> None:
    world.start()
    first, second = demo().spec.environments
    world.start(environments=(first, second.model_copy(update={"state": "stopped"})))
    core = world.files("core")
    assert b"overlays/prod" not in core[LIST]
    assert b"prod=" in core[LIST]
    assert "clusters/overlays/prod/kustomization.yaml" in core


def test_conflict_shows_both_sides_and_writes_nothing(world: Repositories) -> None:
    world.start()
    path = "apps/echo/overlays/stage/hosts.yaml"
    world.edit("apps", path, "echo.stage.example.org", "www.example.org")
    before = world.refs()
    with pytest.raises(MergeConflict) as caught:
        world.start(domain="example.com")
    text = str(caught.value)
    assert path in text
    assert "www.example.org" in text
    assert "echo.stage.example.com" in text
    assert f"ucp start --ours apps:{path}" in text
    assert world.refs() == before, "the other repository is left alone too"
    with pytest.raises(MergeConflict):
        world.start(domain="example.com")

    world.start(domain="example.com", resolutions=resolutions_from([path], []))
    assert b"www.example.org" in world.files("apps")[path]
    assert b"example.com" in world.files("apps")["apps/echo/overlays/prod/hosts.yaml"]
    assert not world.start(domain="example.com").changed, "settled once is settled"


def test_conflict_can_be_resolved_with_the_render(world: Repositories) -> None:
    world.start()
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    world.edit("apps", STAGE, "count: 1", "count: 7")
    with pytest.raises(MergeConflict):
        world.start(apps=(echo(replicas=2),))
    world.start(apps=(echo(replicas=2),), resolutions=resolutions_from([], [f"apps:{STAGE}"]))
    stage = world.files("apps")[STAGE]
    assert b"count: 2" in stage
    assert b'newTag: "0.9.3"' in stage, "not even then a tag is lost"


def test_the_render_can_replace_an_edit_before_it_conflicts(world: Repositories) -> None:
    """An edit of ucp.yaml is published as a whole or not at all: it can't resolve conflicts."""
    world.start()
    path = "apps/echo/overlays/stage/hosts.yaml"
    world.edit("apps", path, "echo.stage.example.org", "www.example.org")
    assert not world.start().changed, "an edit alone is no conflict, and stays"
    world.start(resolutions=resolutions_from([], [f"apps:{path}"]))
    assert b"echo.stage.example.org" in world.files("apps")[path]
    world.start(domain="example.com")
    assert b"echo.stage.example.com" in world.files("apps")[path]


@pytest.mark.parametrize("chosen", [(["nope"], []), ([], [f"apps:{STAGE}x"])])
def test_a_choice_for_a_file_that_is_not_rendered_is_refused(
    world: Repositories, chosen: tuple[list[str], list[str]]
) -> None:
    world.start()
    before = world.refs()
    with pytest.raises(UsageError, match="renders no such file") as refused:
        world.start(domain="example.com", resolutions=resolutions_from(*chosen))
    assert ("did you mean" in refused.value.message) is bool(chosen[1])
    assert world.refs() == before


def test_edited_file_that_the_render_removes_is_a_conflict(world: Repositories) -> None:
    world.start()
    path = "apps/echo/overlays/stage/hosts.yaml"
    world.edit("apps", path, "example.org", "example.net")
    with pytest.raises(MergeConflict, match="removed in the render"):
        world.start(apps=(echo(hosts=()),))
    world.start(apps=(echo(hosts=()),), resolutions=resolutions_from([], [path]))
    assert path not in world.files("apps")


def test_rendered_file_that_a_person_created_first_is_a_conflict(world: Repositories) -> None:
    world.start()
    path = "apps/quote/base/service.yaml"
    world.push("apps", {path: b"kind: Mine\n"})
    quote = App(name="quote", image="quote", tag="1")
    with pytest.raises(MergeConflict, match="kind: Mine"):
        world.start(apps=(echo(), quote))
    world.start(apps=(echo(), quote), resolutions=resolutions_from([path], []))
    assert world.files("apps")[path] == b"kind: Mine\n"
    assert "apps/quote/base/deployment.yaml" in world.files("apps")


def test_files_that_a_forge_created_are_kept(world: Repositories) -> None:
    """The repository has a README and a licence before the first render."""
    from k8s_ucp.git.clones import make_remote

    make_remote(world.folder.apps_remote)
    world.push("apps", {"README.md": b"# mine\n", "LICENSE": b"mine\n"})
    world.start()
    files = world.files("apps")
    assert (files["README.md"], files["LICENSE"]) == (b"# mine\n", b"mine\n")
    assert STAGE in files


def test_file_in_place_of_a_folder_is_a_conflict(world: Repositories) -> None:
    world.start()
    world.push("apps", {"apps/quote": b"notes\n"})
    with pytest.raises(MergeConflict, match="a file and a folder"):
        world.start(apps=(echo(), App(name="quote", image="quote", tag="1")))
    assert world.files("apps")["apps/quote"] == b"notes\n"


def test_file_modes_and_links_are_kept(world: Repositories) -> None:
    world.start()
    clone = make_clone(world.person / "x", world.folder.apps_remote.as_uri())
    clone.fetch()
    clone.git("checkout", "-q", "-B", "main", "origin/main")
    (clone.folder / "README.md").unlink()
    (clone.folder / "README.md").symlink_to("environments.yaml")
    (clone.folder / STAGE).chmod(0o755)
    clone.git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "x")
    clone.git("push", "-q", "origin", "main")
    world.start(apps=(echo(replicas=2),))
    listing = Repository(world.folder.apps_remote).listing("main")
    assert listing["README.md"].mode == "120000"
    assert listing[STAGE].mode == "100755"
    assert b"count: 2" in world.files("apps")[STAGE]


def test_uncommitted_work_in_the_clone_is_kept(world: Repositories) -> None:
    world.start()
    (world.folder.apps / STAGE).write_text("my edit")
    result = world.start(apps=(echo(replicas=2),))
    assert "local commits or edits" in (result.apps.note or "")
    assert (world.folder.apps / STAGE).read_text() == "my edit"
    assert b"count: 2" in world.files("apps")[STAGE]


def test_unpushed_commits_in_the_clone_are_kept(world: Repositories) -> None:
    world.start()
    (world.folder.core / "mine.yaml").write_text("kind: List\n")
    own = world.commit_in_clone("core")
    result = world.start(domain="example.com")
    assert Repository(world.folder.core).resolve("HEAD") == own
    assert result.core.note is not None
    assert "mine.yaml" not in world.files("core")


def test_deleted_clone_is_created_again(world: Repositories) -> None:
    world.start()
    shutil.rmtree(world.folder.core)
    assert not world.start().changed
    assert (world.folder.core / LIST).is_file()


def test_deleted_remote_is_created_again_with_its_history(world: Repositories) -> None:
    world.start()
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    world.start(domain="example.com")
    before = Repository(world.folder.apps_remote).refs()
    shutil.rmtree(world.folder.apps_remote)
    world.start(domain="example.com")
    assert Repository(world.folder.apps_remote).refs() == before


def test_last_render_that_is_not_a_commit_is_refused(world: Repositories) -> None:
    world.start()
    clone, before = Repository(world.folder.root / "core"), world.files("core")
    blob = clone.git("hash-object", "-w", "--stdin", stdin=b"not a render").decode().strip()
    clone.push([RefUpdate(RENDERED, blob, expect=clone.remote_refs()[RENDERED])])
    with pytest.raises(UcpError, match="core repository is not a commit") as refused:
        world.start(domain="example.com")
    assert f" push origin :{RENDERED}; then run ucp start" in (refused.value.next or "")
    assert world.files("core") == before
    # What the error proposes solves the problem: the files that differ can be chosen.
    clone.git("push", "--quiet", "origin", f":{RENDERED}")
    with pytest.raises(MergeConflict):
        world.start(domain="example.com")


def test_renamed_branch_is_refused(world: Repositories) -> None:
    """A new branch would have the first tags, no edits and no backup; Argo CD would deploy it."""
    world.start()
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    Repository(world.folder.apps_remote).git("branch", "-m", "main", "trunk")
    before = world.refs()
    with pytest.raises(UcpError, match=r"apps repository has no branch main; its branches: trunk"):
        world.start(domain="example.com")
    shutil.rmtree(world.folder.apps)  # A clone that has never seen the branch.
    with pytest.raises(UcpError, match="no branch main"):
        world.start(domain="example.com")
    assert world.refs() == before
    Repository(world.folder.apps_remote).git("branch", "-m", "trunk", "main")
    world.start(domain="example.com")
    assert b"0.9.3" in world.files("apps")[STAGE]


def test_pushes_of_people_during_starts_are_kept(world: Repositories) -> None:
    world.start()
    stop = threading.Event()
    pushed: list[str] = []

    def person(number: int) -> None:
        clone = make_clone(world.person / str(number), world.folder.apps_remote.as_uri())
        from k8s_ucp.git.failures import Rejected
        from k8s_ucp.git.repository import RefUpdate

        for count in range(6):
            path = f"notes/{number}-{count}"
            while not stop.is_set():
                clone.fetch()
                commit = clone.write_commit(
                    "note", {path: b"x"}, parent=clone.resolve("origin/main")
                )
                try:
                    clone.push([RefUpdate("refs/heads/main", commit)])
                except Rejected:
                    continue
                pushed.append(path)
                break

    with ThreadPoolExecutor() as pool:
        people = [pool.submit(person, number) for number in range(2)]
        try:
            for replicas in range(2, 6):
                world.start(apps=(echo(replicas=replicas),))
            for each in people:
                each.result(timeout=60)
        finally:
            stop.set()
    files = world.files("apps")
    assert len(pushed) == 12
    assert set(pushed) <= set(files)
    assert b"count: 5" in files[STAGE]


def test_resolutions_apply_to_one_or_both_repositories() -> None:
    resolutions = resolutions_from(["a", "core:b"], ["apps:c"])
    assert resolutions.core.ours == {"a", "b"}
    assert resolutions.apps.ours == {"a"}
    assert (resolutions.core.theirs, resolutions.apps.theirs) == (frozenset(), {"c"})
    assert Resolutions() == resolutions_from([], [])


def test_published_tree_is_the_render(world: Repositories) -> None:
    from k8s_ucp.gitops.render.repositories import RenderInputs
    from tests.unit.gitops.topologies import FACTS

    world.start()
    topology = demo()
    facts = RenderInputs(
        machine=FACTS.machine,
        core_url=world.folder.core_remote.as_uri(),
        apps_url=world.folder.apps_remote.as_uri(),
        topology_file=world.files("core")["ucp.yaml"],
        engine=FACTS.engine,
        versions=FACTS.versions,
    )
    rendered = render(topology, facts)
    assert world.files("core") == rendered.core
    assert world.files("apps") == rendered.apps


def test_application_sets_move_to_the_core_repository(world: Repositories) -> None:
    world.start()
    now = {name: world.files(name) for name in ("core", "apps")}
    write_older_layout(world.folder, world.person)
    assert SETS[0] in world.files("apps")
    assert world.start().changed
    assert {name: world.files(name) for name in ("core", "apps")} == now
    assert not world.start().changed


def test_edited_application_set_is_not_moved_without_consent(world: Repositories) -> None:
    """Nor dropped: content of the app repository must not get permissions on the core."""
    world.start()
    write_older_layout(world.folder, world.person)
    world.edit("apps", SETS[1], "maxDuration: 30s", "maxDuration: 60s")
    before = world.refs()
    with pytest.raises(MergeConflict, match="now read from the core repository only"):
        world.start()
    assert world.refs() == before
    mine = world.files("apps")[SETS[1]]
    world.push("core", {SETS[1]: mine})
    world.start(resolutions=resolutions_from([f"core:{SETS[1]}"], [f"apps:{SETS[1]}"]))
    assert world.files("core")[SETS[1]] == mine
    assert SETS[1] not in world.files("apps")


def test_added_application_sets_must_be_moved_first(world: Repositories) -> None:
    """Argo CD would prune those that are missing in the repository that it reads from now on."""
    world.start()
    write_older_layout(world.folder, world.person)
    mine = "applications/mine.yaml"
    text = world.files("apps")[SETS[1]].replace(b"name: applications\n", b"name: mine\n")
    world.push("apps", {mine: text, "applications/notes.md": b"news\n"})
    before = world.refs()
    with pytest.raises(UcpError, match=f"{mine}"):
        world.start()
    assert world.refs() == before
    world.push("core", {mine: text})
    world.start()
    assert mine in world.files("core")
    # It has no effect any more.
    world.push("apps", {"applications/more.yaml": text})
    world.start(domain="example.com")

"""The topology that `ucp start` resolves from flags, ucp.yaml and answers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.lifecycle.start import _write_down
from k8s_ucp.cli.lifecycle.start_request import (
    Flags,
    _answered,
    _with_simulation,
    parse_flags,
    resolve_topology,
)
from k8s_ucp.cli.questions import Answers, can_ask
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.inspect.teardown.destruction import Destruction, note_destruction
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text


@pytest.mark.parametrize(
    ("core", "engine", "told"),
    [(None, True, True), (None, False, False), ("embedded", True, False), ("kind", True, False)],
)
def test_the_default_core_mentions_kind_if_a_container_engine_is_available(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    core: str | None,
    engine: bool,
    told: bool,
) -> None:
    silent = None if engine else UcpError("Docker is not running")
    monkeypatch.setattr("k8s_ucp.clusters.kind.provider.why_unavailable", lambda: silent)
    flags = parse_flags(yes=True, file=None, core=core, environments=None, apps=None)
    wanted = resolve_topology(Invocation(tmp_path), flags)
    assert wanted.topology.spec.core.provider == (core or "embedded")
    assert ("ucp start --core kind" in capsys.readouterr().err) is told
    assert not any(tmp_path.iterdir())


def test_a_lost_ucp_yaml_of_a_started_topology_is_not_replaced_by_the_defaults(
    tmp_path: Path,
) -> None:
    call = Invocation(tmp_path)
    remember(call.workspace, "shop", topology_text(default("shop", ["dev"], ["echo"])))
    flags = parse_flags(yes=True, file=None, core=None, environments=None, apps=None)
    for each in (call, replace(call, topology="shop")):
        with pytest.raises(UsageError, match="the topology shop was started here") as refused:
            resolve_topology(each, flags)
        copy, path = tmp_path / ".ucp/shop/ucp.yaml", tmp_path / "ucp.yaml"
        assert refused.value.next == f"restore it: cp {copy} {path}"
    # What the flags describe, another topology, and one that was destroyed are started.
    described = replace(flags, core="embedded")
    assert resolve_topology(call, described).topology.name == "demo"
    assert resolve_topology(replace(call, topology="other"), flags).topology.name == "other"
    note_destruction(call.workspace.state("shop").destroyed, Destruction("2026-01-01T00:00:00Z"))
    assert resolve_topology(call, flags).topology.name == "demo"


def adopting(words: str, **more: str) -> Flags:
    core = more.get("core")
    return parse_flags(yes=True, file=None, core=core, environments=None, apps=None, adopt=words)


def test_adopted_components_are_added_to_the_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "ucp.yaml"
    text = (
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\nspec:\n"
        "  core: {provider: existing, context: far, adopt: [argocd]}\n"
        "  git: {provider: url, core: https://a/b, apps: https://a/c}\n"
    )
    path.write_text(text)
    same = resolve_topology(Invocation(tmp_path), adopting("argocd", core="existing"))
    assert (same.changed, same.text) == ("", text)
    more = resolve_topology(Invocation(tmp_path), adopting("crossplane, argocd"))
    assert more.topology.spec.core.adopt == ("argocd", "crossplane")
    assert more.text == text.replace("[argocd]", "[argocd, crossplane]")
    assert (more.changed, more.exists) == ("spec.core.adopt", True)
    assert path.read_text() == text, "it is written when everything was looked at"


def test_invalid_adoptions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--adopt: 'traefik' is not an adoptable component"):
        adopting("argocd,traefik")
    with pytest.raises(UsageError, match="'adopt' is valid for provider existing"):
        resolve_topology(Invocation(tmp_path), adopting("argocd", core="embedded"))
    for core in (None, "kind"):
        asking = replace(adopting("argocd"), core=core, yes=False)
        with pytest.raises(UsageError, match="'adopt' is valid for provider existing"):
            resolve_topology(Invocation(tmp_path), asking)
    assert not any(tmp_path.iterdir())


def test_a_file_that_changed_during_the_checks_is_not_started(tmp_path: Path) -> None:
    """The start would push a render without the concurrent edit."""
    path = tmp_path / "ucp.yaml"
    path.write_text(topology_text(default()))
    call = Invocation(tmp_path)
    flags = parse_flags(yes=True, file=None, core=None, environments=None, apps=None)
    wanted = resolve_topology(call, flags)
    path.write_text(topology_text(default(environments=("stage", "prod", "eu"))))
    with pytest.raises(UcpError, match="changed while it was checked"):
        _write_down(call, wanted)
    assert not (tmp_path / ".ucp").exists()
    _write_down(call, resolve_topology(call, flags))
    assert (tmp_path / ".ucp" / "demo" / "ucp.yaml").read_text() == path.read_text()


def test_a_simulated_cloud_is_written_to_a_new_file(tmp_path: Path) -> None:
    flags = parse_flags(
        yes=True,
        file=None,
        core=None,
        environments=["stage=eks", "prod=eks"],
        apps=None,
        simulate=True,
    )
    call = Invocation(tmp_path)
    wanted = resolve_topology(call, flags)
    assert wanted.topology.spec.clouds.simulated == ("aws",)
    wanted.path.write_text(wanted.text)
    # The same command again.
    assert resolve_topology(call, flags).topology == wanted.topology

    wanted.path.write_text(wanted.text.replace("simulated: true", "simulated: false"))
    with pytest.raises(UsageError, match="exists and contradicts --cloud local"):
        resolve_topology(call, flags)


def test_databases_of_apps_are_created_in_the_simulated_cloud(tmp_path: Path) -> None:
    flags = parse_flags(
        yes=True, file=None, core=None, environments=None, apps=["quote"], simulate=True
    )
    wanted = resolve_topology(Invocation(tmp_path), flags)
    assert "{name: quotes, provider: aws}" in wanted.text
    here = resolve_topology(Invocation(tmp_path), replace(flags, simulate=False))
    assert "{name: quotes, provider: local}" in here.text


def test_a_simulated_cloud_requires_an_embedded_core(tmp_path: Path) -> None:
    flags = parse_flags(
        yes=True, file=None, core="kind", environments=None, apps=None, simulate=True
    )
    with pytest.raises(UsageError, match="a simulated aws is not supported with a kind core"):
        resolve_topology(Invocation(tmp_path), flags)


def test_workspaces_propose_different_names_for_what_one_account_gets(tmp_path: Path) -> None:
    """Crossplane would manage the other one's clusters, and delete them with its own."""

    def proposed(folder: str, *, simulate: bool = False) -> str:
        flags = parse_flags(
            yes=True,
            file=None,
            core="embedded" if simulate else "kind",
            environments=["stage=eks"],
            apps=None,
            simulate=simulate,
        )
        (tmp_path / folder).mkdir(exist_ok=True)
        return resolve_topology(Invocation(tmp_path / folder), flags).topology.name

    assert proposed("one").startswith("demo-")
    assert proposed("one") == proposed("one") != proposed("other")
    assert proposed("one", simulate=True) == "demo"


@pytest.mark.parametrize(
    ("environment", "core", "credential", "asked"),
    [
        ("stage=eks", "embedded", False, True),
        ("stage=eks", "embedded", True, False),
        ("stage=eks", "kind", False, False),
        ("stage=embedded", "embedded", False, False),
    ],
)
def test_an_aws_environment_without_a_credential_asks_whether_to_simulate_aws(
    environment: str,
    core: str,
    credential: bool,
    asked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return True

    monkeypatch.setattr("k8s_ucp.cli.questions.confirm", agree)
    flags = parse_flags(yes=False, file=None, core=core, environments=[environment], apps=None)
    if credential:
        (tmp_path / "creds").mkdir()
        (tmp_path / "creds" / "aws.ini").touch()
    assert _with_simulation(Invocation(tmp_path), flags).simulate is asked
    assert bool(questions) is asked
    answers = Answers(core, ("stage", "prod"), ("echo",))
    providers = dict(_answered(answers, flags).environments or ())
    assert providers == {"stage": environment.partition("=")[2], "prod": "embedded"}


def test_the_new_file_fits_80_columns_as_the_wizard_shows_it() -> None:
    indented = [f"    {line}" for line in topology_text(default()).splitlines()]
    assert [line for line in indented if len(line) > 80] == []


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_nobody_is_asked_in_a_terminal_that_cannot_draw_a_menu(
    monkeypatch: pytest.MonkeyPatch, terminal: str
) -> None:
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", terminal)
    assert can_ask() is (terminal != "dumb")


def test_an_environment_with_an_empty_provider_is_refused() -> None:
    with pytest.raises(UsageError, match="--env stage: unknown provider ''") as caught:
        parse_flags(yes=True, file=None, core=None, environments=["stage="], apps=None)
    assert caught.value.next == "ucp start --env stage=embedded"


def test_a_new_workspace_overwrites_no_file_that_a_link_leads_to(tmp_path: Path) -> None:
    """The folder may be a clone of a repository of others."""
    elsewhere, root = tmp_path / "profile", tmp_path / "clone"
    root.mkdir()
    elsewhere.write_text("export PATH\n")
    (root / "ucp.schema.json").symlink_to(elsewhere)
    flags = parse_flags(yes=True, file=None, core=None, environments=None, apps=None)

    _write_down(Invocation(root), resolve_topology(Invocation(root), flags))

    assert elsewhere.read_text() == "export PATH\n"
    assert (root / "ucp.schema.json").read_text().startswith("{")

"""Words of similar tools are answered with the command line that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from k8s_ucp.cli import main
from k8s_ucp.cli.failures import familiar_words


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["up"], "ucp start"),
        (["create", "cluster"], "ucp start"),
        (["delete"], "ucp destroy --plan"),
        (["describe", "echo"], "ucp status"),
        (["get", "apps", "-A"], "ucp app list"),
        (["get", "app", "echo", "-o", "wide"], "ucp status echo"),
        (["get", "pods"], "ucp status"),
        (["get", "kubeconfig"], "ucp kubeconfig"),
        (["list", "envs"], "ucp env list"),
        (["describe", "app", "echo"], "ucp status echo"),
        (["delete", "env", "stage"], "ucp env remove stage"),
        (["remove", "env", "a b"], "ucp env remove 'a b'"),
        (["add", "env", "eu"], "ucp env add eu"),
        (["create", "claim", "db"], "ucp claim new db"),
        (["delete", "cluster"], "ucp destroy --plan"),
        (["mirrors"], "ucp mirror list"),
        (["help", "apps"], "ucp app list"),
        (["clusters", "ls"], "ucp clusters list"),
        (["top"], "ucp status"),
        (["app", "get", "echo"], "ucp status echo"),
        (["app", "history", "echo"], "ucp history echo"),
        (["app", "sync", "echo"], "ucp status echo"),
        (["export", "kubeconfig"], "ucp kubeconfig"),
        (["status", "--json"], "ucp status --output=json"),
        (["secrets"], "ucp get secrets"),
        (["get", "secret", "argocd", "-o", "json"], "ucp get secrets -o json"),
        (["env", "create", "qa"], "ucp env add qa"),
        (["app", "ls"], "ucp app list"),
        (["clusters", "delete", "old"], "ucp clusters forget old"),
        (["claim", "add", "orders"], "ucp claim new orders"),
        (["promot", "echo", "--env", "prod"], "ucp promote echo --env prod"),
        (["open", "argo"], "ucp open argocd"),
        (["open", "board"], "ucp board"),
        (["start", "--dry-run"], "ucp start --plan"),
        (["promote", "-e", "prod", "-t", "1", "echo"], "ucp promote --env prod -t 1 echo"),
        (["promote", "echo", "--version=2"], "ucp promote echo --tag=2"),
        (["env", "add", "qa", "--provider", "kind"], "ucp env add qa --cluster kind"),
        (["-q", "destroy", "--auto-approve"], "ucp -q destroy --yes"),
        (["upgrade", "core", "--yes"], "ucp upgrade core"),
        (["promote", "echo", "--env", "prod", "-y"], "ucp promote echo --env prod"),
        (["promote", "echo", "--environment=prod"], "ucp promote echo --env=prod"),
        (["promote", "--to", "a b", "echo"], "ucp promote --env 'a b' echo"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_the_advice_is_the_command_line_that_was_meant(
    line: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line) == 2
    error = capsys.readouterr().err
    assert error.endswith(f"\n  next: {meant}\n")
    assert "Did you mean" not in error and "Possible options" not in error


@pytest.mark.parametrize(
    "line", [["git", "push"], ["set", "image"], ["stage"], ["cloud", "destroy"]]
)
def test_a_command_that_is_only_a_little_alike_is_not_suggested(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line) == 2
    path = "ucp cloud" if line[0] == "cloud" else "ucp"
    assert capsys.readouterr().err.endswith(f"\n  next: {path} --help\n")


def _groups() -> Iterator[tuple[str, Any]]:
    for name in main.COMMANDS:
        command = main._load(name, [])
        yield name, command
        yield from ((f"{name} {each}", found) for each, found in _commands(command).items())


def _commands(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def test_no_word_is_also_one_of_our_commands() -> None:
    assert not set(familiar_words.COMMANDS) & set(main.COMMANDS)


def test_every_suggested_command_exists() -> None:
    ours = {name for name, _ in _groups()}
    flags = {flag for each in typer.main.get_command(main.app).params for flag in each.opts}
    of_nouns = [each for meant in familiar_words.NOUNS.values() for each in meant]
    for meant in [*familiar_words.COMMANDS.values(), *of_nouns]:
        words = " ".join(each for each in meant.split() if not each.startswith("--"))
        assert words in ours or meant in flags | {"--help"}


def test_every_suggested_option_and_subcommand_exists_somewhere() -> None:
    groups = list(_groups())
    commands = {each for _, group in groups for each in _commands(group)}
    options = {flag for _, group in groups for each in group.params for flag in each.opts}
    assert {each for names in familiar_words.SUBCOMMANDS.values() for each in names} <= commands
    ours = (each for names in familiar_words.OPTIONS.values() for each in names)
    assert {each.partition("=")[0] for each in ours} <= options

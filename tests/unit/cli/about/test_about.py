"""`ucp help`, `ucp version` and `ucp completion`."""

from __future__ import annotations

import json
import subprocess

import pytest

from k8s_ucp import __version__
from k8s_ucp.cli import main


def said(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.run(line.split()) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", ["", "status", "app add", "cloud fault add"])
def test_help_prints_the_page_of_a_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(f"help {words}", capsys) == said(f"{words} --help", capsys)


@pytest.mark.parametrize(
    ("line", "advice"),
    [("help nothing", "ucp --help"), ("help app nothing", "ucp app --help"),
     ("help status echo", "ucp status --help")],
)  # fmt: skip
def test_help_on_an_unknown_command_says_what_to_type(
    line: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line.split()) == 2
    assert capsys.readouterr().err.endswith(f"\n  next: {advice}\n")


def test_version_is_also_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert said("version", capsys) == said("--version", capsys) == f"ucp {__version__}\n"
    assert json.loads(said("version -o json", capsys)) == {"version": __version__}


def test_completion_prints_a_script_that_the_shell_can_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = said("completion bash", capsys) + "complete -p ucp\n"
    done = subprocess.run(
        ["bash"], input=script, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith(" ucp\n") and not done.stderr
    for shell in ("zsh", "fish", "powershell"):
        assert "_UCP_COMPLETE" in said(f"completion {shell}", capsys)
    # compinit ignores a file without it.
    assert said("completion zsh", capsys).startswith("#compdef ucp\n")

"""supervisord's configuration: no character in a path or value may change its meaning."""

from __future__ import annotations

import configparser
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.components.host.program import Program, config, script, section

ANYTHING = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NASTY = ["a b", "50%", "%(here)s", "a ; b", "a # b", "it's", '"', "$HOME", "`id`", "x\ny", ""]


def a_program(**changes: object) -> Program:
    given = {"name": "demo", "argv": ("/bin/true",), "directory": Path("/"), "env": {}}
    return Program(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NASTY)
def test_a_section_contains_no_value_of_the_program(value: str) -> None:
    plain = section(a_program())
    nasty = section(
        a_program(argv=("/bin/true", value), env={"NAME": value}, directory=Path("/") / value)
    )
    kept = [line for line in nasty.splitlines() if line not in plain.splitlines()]
    assert [line.split("=")[0] for line in kept] == ["environment"]


@given(ANYTHING, ANYTHING)
def test_the_script_quotes_arguments_and_environment_values(word: str, value: str) -> None:
    text = script(a_program(argv=("/bin/true", word), env={"NAME": value}))
    exported, _, executed = text.partition("\ncd / || exit 1\n")
    assert shlex.split(executed) == ["exec", "/bin/true", word]
    assert shlex.split(exported.partition("umask 077\n")[2]) == ["export", f"NAME={value}"]


@pytest.mark.parametrize("value", NASTY)
def test_a_shell_passes_arguments_and_environment_unchanged(value: str) -> None:
    show = (
        "/usr/bin/env",
        "python3",
        "-c",
        "import os,sys;print(ascii([sys.argv[1],os.environ['V']]))",
    )
    text = script(a_program(argv=(*show, value), env={"V": value}))
    out = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ascii([value, value])


def test_a_program_can_reserve_a_limited_amount_of_memory(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", "bytearray(1 << 30); print('taken')")
    for addresses, expected in ((500_000_000, b""), (None, b"taken\n")):
        limited = Program("x", argv, tmp_path, addresses=addresses)
        done = subprocess.run(["sh", "-c", script(limited)], capture_output=True, check=False)
        assert done.stdout == expected


def test_a_change_of_the_environment_changes_the_section() -> None:
    assert section(a_program(env={"A": "1"})) != section(a_program(env={"A": "2"}))
    assert section(a_program(env={"A": "1"})) == section(a_program(env={"A": "1"}))


def test_a_secret_is_written_only_to_the_script() -> None:
    secret = a_program(env={"PASSWORD": "canary-4711"})
    whole = config(Path("/run/x/s.sock"), "ucp-1", {"demo": section(secret)}, root=False)
    assert "canary-4711" not in whole
    assert "canary-4711" in script(secret)


def test_a_percent_sign_in_the_socket_s_path_is_escaped() -> None:
    text = config(Path("/run/50%/s.sock"), "ucp-1", {}, root=True)
    parsed = configparser.RawConfigParser()
    parsed.read_string(text)
    assert parsed["unix_http_server"]["file"] % {} == "/run/50%/s.sock"
    assert parsed["supervisord"]["user"] == "root"


def test_programs_are_sorted_by_name() -> None:
    sections = {name: section(a_program(name=name)) for name in ("redis", "argocd")}
    text = config(Path("/s"), "i", sections, root=False)
    assert text.index("[program:argocd]") < text.index("[program:redis]")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Upper"},
        {"name": "a:b"},
        {"name": ""},
        {"argv": ()},
        {"env": {"A B": "x"}},
        {"env": {"A": "x\0y"}},
    ],
)
def test_invalid_programs_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not a valid program|variable|NUL"):
        a_program(**wrong)

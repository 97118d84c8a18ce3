"""The command line itself: its imports, output and exit codes."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from k8s_ucp.cli import main
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    declare,
    invocation,
    notation,
    with_given_options,
)
from k8s_ucp.cli.console import Console
from k8s_ucp.cli.failures.bug_report import KEPT, summary, write_report
from k8s_ucp.cli.failures.report import BUG
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.redaction import without_secrets

HEAVY = (
    "http.server",
    "kubernetes",
    "git",
    "pydantic",
    "rich",
    "jinja2",
    "questionary",
    "ruamel",
    "sh",
    "psutil",
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> list[Invocation]:
    """A command `probe FAILURE` that raises this failure; yields its invocations."""
    app = declare()
    seen: list[Invocation] = []
    failures: dict[str, BaseException] = {
        "expected": UcpError("the disk is full", next="free some space"),
        "usage": UsageError("no such cluster"),
        "bug": RuntimeError("oops password=hunter2"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
        "full": UcpError("failed to write README.md: No space left on device"),
        "thread": RuntimeError("can't start new thread"),
        "fork": OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        "memory": OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    }

    failures["full"].__cause__ = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @app.command()
    def probe(ctx: typer.Context, failure: str = typer.Argument("")) -> None:
        seen.append(invocation(ctx))
        if failure:
            raise failures[failure]

    entry = main.CommandEntry("probe", "For tests.")
    monkeypatch.setitem(main.COMMANDS, "probe", entry)
    monkeypatch.setattr(main, "import_module", lambda _: SimpleNamespace(app=app))
    return seen


def test_help_loads_no_heavy_module() -> None:
    script = (
        "import sys; from k8s_ucp.cli.main import run; code = run(['--help'])\n"
        f"print(code, [each for each in {HEAVY!r} if each in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stderr.strip() == "0 []"
    for name in main.COMMANDS:
        assert name in ended.stdout


def test_every_command_of_the_table_can_be_loaded() -> None:
    for name in main.COMMANDS:
        assert main._load(name, []).name == name


@pytest.mark.parametrize(
    ("failure", "code"),
    [("", 0), ("expected", 1), ("usage", 2), ("bug", 3), ("interrupt", 130)],
)
def test_each_kind_of_failure_has_its_exit_code(
    command: list[Invocation],
    failure: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path))
    assert main.run(["probe", failure] if failure else ["probe"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(command) == 1
    assert "hunter2" not in said.err
    if failure == "expected":
        assert said.err == "ucp: the disk is full\n  next: free some space\n"
    if failure == "bug":
        (report,) = (tmp_path / "bugs").iterdir()
        assert str(report) in said.err
        assert report.stat().st_mode & 0o777 == 0o600
        assert "Traceback" in report.read_text()
        assert "hunter2" not in report.read_text()


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        *(("thread", "ulimit -u"), ("fork", "ulimit -u")),
        *(("memory", "memory"), ("full", "free disk space")),
    ],
)
def test_a_limit_of_the_machine_is_no_bug(
    command: list[Invocation], failure: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["probe", failure]) == 1
    assert advice in capsys.readouterr().err.partition("next: ")[2]
    assert len(command) == 1


@pytest.mark.parametrize(
    "line",
    [["--workspace", "/srv", "-q", "probe"], ["probe", "-q", "--workspace=/srv"]],
    ids=["before", "after"],
)
def test_global_options_are_accepted_before_and_after_the_command(
    command: list[Invocation], line: list[str]
) -> None:
    assert main.run(line) == 0
    assert command == [Invocation(folder=Path("/srv"), quiet=True)]


@pytest.mark.parametrize(
    "line",
    [
        ["mirror", "--workspace", "{}", "list"],
        ["mirror", "list", "--workspace={}"],
        ["clusters", "--workspace={}"],
    ],
)
def test_command_groups_accept_global_options(
    tmp_path: Path, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([each.format(tmp_path) for each in line]) == 1
    assert f"nothing was started in {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("line", [["prob"], ["--no-such"], ["probe", "a", "b"]])
def test_usage_errors_exit_with_2_and_suggest_a_command(
    command: list[Invocation], line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line) == 2
    assert "next: ucp" in capsys.readouterr().err
    assert not command


def test_a_mistyped_command_suggests_the_nearest_one(
    command: list[Invocation], capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["prob"])
    assert capsys.readouterr().err.endswith("next: ucp probe\n")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (
            ["--env", "x", "promote", "echo"],
            "put the options of promote after it: ucp promote --env",
        ),
        (["app", "--dry-run", "add"], "put the options of add after it: ucp app add --dry-run"),
        (["--env", "x", "status"], "ucp --help"),
        (["promote", "--color"], "ucp promote --help"),
        (["stop", "--env"], "ucp stop --help"),
        (["-q", "env", "add", "--cluster"], "ucp env add --help"),
        (["reconciler", "run", "--controllers", "no"], "ucp reconciler run --help"),
    ],
    ids=[
        *("command", "sub-command", "neither", "unknown", "no value", "no value of a sub-command"),
        "unknown controller",
    ],
)
def test_a_misplaced_or_incomplete_option_suggests_the_command_that_has_it(
    line: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line) == 2
    assert f"next: {advice}" in capsys.readouterr().err


def test_without_arguments_the_usage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 2
    assert capsys.readouterr().err.startswith("Usage: ucp")


@pytest.mark.parametrize(
    "secret",
    [
        "https://me:hunter2@example.org/x.git",
        "Authorization: Bearer abc.hunter2",
        "password=hunter2",
        "'token': 'hunter2'",
        "-----BEGIN RSA" + " PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "eyJhbGciOi.hunter2.sig",
        "Authorization: token hunter2",
        '{"Authorization": "token hunter2"}',
        "password: 'it is hunter2'",
        '{"password":"it is hunter2","name":"x"}',
        r'msg="{\"password\":\"it is hunter2\"}"',
        "X-Api-Key: hunter2",
        "api_key=hunter2",
        "passphrase: hunter2",
        "ghp_hunter2hunter2hunter2",
        "glpat-hunter2hunter2",
    ],
)
def test_secrets_are_redacted_from_reports(secret: str) -> None:
    assert "hunter2" not in without_secrets(f"before {secret} after")


@pytest.mark.parametrize("name", ["", *main.COMMANDS])
def test_no_list_of_commands_is_cut_on_a_narrow_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main.run([*filter(None, [name]), "--help"]) == 0
    commands = capsys.readouterr().out.partition("\nCommands:")[2]
    assert "..." not in commands


def test_a_bug_is_reported_without_a_home_directory(
    command: list[Invocation], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**22 + 7)
    assert main.run(["probe", "bug"]) == BUG
    assert "this is a bug in ucp" in capsys.readouterr().err


def test_a_bug_report_escapes_text_that_no_encoding_can_represent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that isn't valid in the user's encoding contains surrogates."""
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path))
    error = ValueError("no such folder: caf\udcc3\udca9")
    report = write_report(error, ["ucp", "--workspace", "caf\udcc3\udca9"])
    assert report
    assert "caf\\udcc3\\udca9" in report.read_text("utf-8")
    assert summary(error).encode() == b"ValueError: no such folder: caf\\udcc3\\udca9"


def test_data_is_printed_if_the_encoding_of_stdout_lacks_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as a folder of a repository that a person named in Latin-1."""
    raw = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(raw, "utf-8", errors="strict"))
    monkeypatch.setattr(main, "leave", lambda _: None)
    monkeypatch.setattr(gc, "disable", lambda: None)  # not for the tests that follow
    monkeypatch.setattr(main, "run", lambda _: Console().data("caf\udce9"))
    main.main()
    assert raw.getvalue() == b"caf\\udce9\n"


def test_a_workspace_whose_path_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """Neither kubeconfigs nor the settings of programs could contain it."""
    with pytest.raises(UsageError, match="is not valid UTF-8"):
        _ = Invocation(tmp_path / "caf\udce9").workspace


def test_old_bug_reports_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "bugs"
    folder.mkdir()
    for day in range(10, 31):
        (folder / f"202001{day}-000000.txt").touch()
    report = write_report(ValueError("new"), ["ucp"])
    names = sorted(each.name for each in folder.iterdir())
    assert report
    assert len(names) == KEPT
    assert names[0] == "20200112-000000.txt"
    assert names[-1] == report.name


def test_created_files_are_not_writable_by_others() -> None:
    script = (
        "import os; from k8s_ucp.cli import main; os.umask(0)\n"
        "main.run = lambda _: print(oct(os.umask(0))) or 0\nmain.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "0o22"


def test_the_end_of_a_command_runs_exit_functions_and_writes_all_output() -> None:
    script = (
        "import atexit; from k8s_ucp.cli.main import leave\n"
        "atexit.register(print, 'at exit'); print('last', end=' '); leave(0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "last at exit\n"


def test_closed_input_is_empty(tmp_path: Path) -> None:
    """As of a service or a CI job without one."""
    script = f"{sys.executable} -m k8s_ucp.cli.main promote --batch - <&-"
    ended = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert ended.returncode == UsageError.exit_code, ended.stderr


def test_closed_output_is_no_error() -> None:
    script = f"{sys.executable} -m k8s_ucp.cli.main --version >&- 2>&-"
    subprocess.run(["bash", "-c", script], timeout=60, check=True)


@pytest.mark.parametrize(
    "word",
    ["a", "é", "token", "eyJ", "Zm9vYmFy/+", "password-", "a://", "a@", 'token="', "token='\\"],
)
def test_a_long_line_is_redacted_within_seconds(word: str) -> None:
    """20,000 characters of base64 in a log once took 17 s."""
    began = time.process_time()
    without_secrets(word * (100_000 // len(word)))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:p@ss@host/x", "https://…@host/x"),
        ("client-key-data: abc", "client-key-data: …"),
        ("x-my_Token_1=abc rest", "x-my_Token_1=… rest"),
        ('"password": "abc"', '"password": …'),
        ("token: 'a b' c", "token: … c"),
        ("token: 'a b", "token: … b"),
        ("the token of demo: abc", "the token of demo: abc"),
    ],
)
def test_only_the_secret_part_of_a_text_is_redacted(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ("ucp start", "ucp start --workspace '/a b'"),
        ("ucp start --yes (asks nothing)", "ucp start --yes --workspace '/a b' (asks nothing)"),
        (
            "ucp stop, then ucp start: all comes back",
            "ucp stop --workspace '/a b', then ucp start --workspace '/a b': all comes back",
        ),
        ("see `ucp status`", "see `ucp status --workspace '/a b'`"),
        (
            "ucp clusters forget demo-eu gives up on it",
            "ucp clusters forget --workspace '/a b' demo-eu gives up on it",
        ),
        (
            "ucp start --adopt argocd,crossplane",
            "ucp start --adopt argocd,crossplane --workspace '/a b'",
        ),
        (
            "give it up: ucp destroy --delete-data --abandon Instance/orders --abandon vpc-1; then",
            "give it up: ucp destroy --delete-data --abandon Instance/orders --abandon vpc-1 "
            "--workspace '/a b'; then",
        ),
        (
            "ucp destroy --plan lists what is; ucp start --takeover has it act again",
            "ucp destroy --plan --workspace '/a b' lists what is; "
            "ucp start --takeover --workspace '/a b' has it act again",
        ),
        (
            "ucp recreate --env eu, or ucp status eu or ucp doctor",
            "ucp recreate --env eu --workspace '/a b', or ucp status --workspace '/a b' eu "
            "or ucp doctor --workspace '/a b'",
        ),
        ("ucp --workspace /c start (completed steps are kept)", None),
        ("on machine desk: ucp stop --workspace '/c d'; if it is gone", None),
        ("ucp start --workspace /c", None),
        ("take a ucp that brings 2.0", None),
        ("edit /x/ucp start.yaml", "edit /x/ucp start.yaml"),
    ],
)
def test_the_suggested_command_repeats_the_given_workspace(
    advice: str, expected: str | None
) -> None:
    assert with_given_options(advice, {"--workspace": "/a b"}) == (expected or advice)
    assert with_given_options(advice, {}) == advice


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_workspace_is_repeated_in_every_command(name: str) -> None:
    commands = getattr(main._load(name, []), "commands", {})
    for words in (name, *(f"{name} {each}" for each in commands)):
        advice = with_given_options(f"ucp {words} NAME", {"--workspace": "/a"})
        assert advice == f"ucp {words} --workspace /a NAME"


def test_an_error_repeats_the_global_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["--workspace", str(tmp_path), "status"]) == 1
    assert f"next: ucp start --workspace {tmp_path}\n" in capsys.readouterr().err
    assert main.run(["status", "--workspace", str(tmp_path), "--topology", "a"]) == 2
    said = capsys.readouterr().err
    assert f"next: ucp start --workspace {tmp_path} --topology a\n" in said


def test_yaml_has_a_long_value_in_the_line_of_its_key() -> None:
    long = {"data": "LS0t" * 300, "text": "two words " * 60}
    assert notation(long, Output.yaml).splitlines() == [
        f"data: {long['data']}",
        f"text: '{long['text']}'",
    ]


def test_a_deleted_current_folder_is_not_reported_as_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main.run(["status"]) == 1
    assert "the current folder was deleted" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("start", "--yes"),
        ("stop", "--yes"),
        ("destroy", "--yes"),
        ("recreate", "--yes"),
        ("upgrade", "core"),
        ("app", "remove", "echo", "--yes"),
        ("env", "remove", "stage", "--yes"),
        ("team", "remove", "web", "--yes"),
        ("env", "add", "eu"),
        ("team", "add", "web"),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_a_run_is_not_started_if_its_output_is_requested_as_data(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program would take the text of the run for JSON, and the run changes things."""
    assert main.run(["--workspace", str(tmp_path), *words, "-o", "json"]) == 2
    found = capsys.readouterr()
    flag = "--dry-run" if "add" in words else "--plan"
    assert f"-o json applies to {flag}" in found.err
    assert f"add {flag}" in found.err
    assert found.out == ""
    assert not list(tmp_path.iterdir())

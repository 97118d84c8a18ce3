"""Flags of `ucp mirror add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli import main


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--from", "tls"], "--from tls names no object"),
        (["--from", "tls/web", "--label", "a=b"], "mutually exclusive"),
    ],
    ids=["neither", "both"],
)
def test_a_source_is_one_object_or_those_with_a_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    line = ["mirror", "add", "web", *flags, "--to", "apps", "--workspace", str(tmp_path)]
    assert main.run(line) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "next: --from tls/NAME, or --from tls --label KEY=VALUE" in error

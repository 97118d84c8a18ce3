"""Which topology `ucp start` is about, without a file and without questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.wanted import find_wanted, parse_flags


@pytest.mark.parametrize(
    ("core", "engine", "told"),
    [(None, True, True), (None, False, False), ("embedded", True, False), ("kind", True, False)],
)
def test_who_takes_the_default_is_told_of_kind_where_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    core: str | None,
    engine: bool,
    told: bool,
) -> None:
    monkeypatch.setattr("k8s_ucp.clusters.kind.is_available", lambda: engine)
    flags = parse_flags(yes=True, file=None, core=core, environments=None, apps=None)
    wanted = find_wanted(Invocation(tmp_path), flags)
    assert wanted.topology.spec.core.provider == (core or "embedded")
    assert ("ucp start --core kind" in capsys.readouterr().err) is told
    assert not any(tmp_path.iterdir())

"""The user's own kubeconfig: ours go in and out, theirs stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.user_contexts import forget_contexts, merged, read_file, without, write_file
from k8s_ucp.errors import UcpError


def config(name: str, authority: str = "Y2E=") -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"client-key-data": "aw=="}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def test_what_goes_in_comes_out_and_the_rest_stays() -> None:
    theirs = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **config("mine", "eA==")}
    both = merged(theirs, config("demo-stage"))
    assert both["current-context"] == "demo-stage"
    assert [each["name"] for each in both["users"]] == ["mine", "demo-stage"]
    left = without(both, config("demo-stage"))
    assert left == {**theirs, "current-context": ""}


def test_another_current_context_stays_current() -> None:
    both = {**merged(config("mine"), config("demo-stage")), "current-context": "mine"}
    assert without(both, config("demo-stage"))["current-context"] == "mine"


def test_another_cluster_of_the_same_name_is_not_ours() -> None:
    theirs = config("demo-stage", "another authority")
    assert without(theirs, config("demo-stage")) == theirs
    assert without({}, config("demo-stage")) == {}


def test_a_file_that_is_none_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    for text in ("- a list", "key: [", "a: b: c"):
        file.write_text(text)
        with pytest.raises(UcpError, match="no kubeconfig"):
            read_file(file)
        forget_contexts(config("demo-stage"))
        assert file.read_text() == text


def test_it_is_written_only_when_something_of_ours_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    forget_contexts(config("demo-stage"))
    assert not file.exists()
    text = "# mine\ncontexts: []\n"
    file.write_text(text)
    forget_contexts(config("demo-stage"))
    assert file.read_text() == text
    write_file(file, merged(read_file(file), config("demo-stage")))
    forget_contexts(config("demo-stage"))
    assert read_file(file)["contexts"] == []

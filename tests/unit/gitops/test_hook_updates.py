"""Hooks that earlier versions wrote into local remotes, whose first line had another text."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from k8s_ucp.gitops.check_hook import ensure_check_hook
from k8s_ucp.gitops.refresh import ensure_hook

PLACE = Path("/nowhere")
ENSURE = {
    "post-receive": partial(ensure_hook, python=PLACE, kubeconfig=PLACE),
    "pre-receive": partial(ensure_check_hook, name="apps", python=PLACE, kustomize=PLACE),
}


@pytest.mark.parametrize(
    ("name", "first_line"),
    [
        ("post-receive", "# Written by k8s-ucp: tells Argo CD about a push."),
        ("pre-receive", "# Written by k8s-ucp: checks a push before it lands."),
    ],
)
def test_a_hook_of_an_earlier_version_is_updated(
    tmp_path: Path, name: str, first_line: str
) -> None:
    hook = tmp_path / "hooks" / name
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\n{first_line}\nexit 0\n")
    assert ENSURE[name](tmp_path) is None
    assert first_line not in hook.read_text()


@pytest.mark.parametrize("name", ENSURE)
def test_a_hook_that_ucp_did_not_write_is_kept(tmp_path: Path, name: str) -> None:
    hook = tmp_path / "hooks" / name
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert "was not created by ucp" in str(ENSURE[name](tmp_path))
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"

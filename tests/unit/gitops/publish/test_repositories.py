"""What an edit says that was pushed to one repository only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.gitops.publish.repositories import _Landed, _revert


@pytest.mark.parametrize(
    "error", [GitFailed("push declined"), DeadlineExceeded("push", 60, "no response")]
)
def test_a_push_that_cannot_be_reverted_is_part_of_the_error(error: UcpError) -> None:
    def revert(_: object) -> None:
        raise error

    prepared: Any = SimpleNamespace(target=SimpleNamespace(name="core"), revert=revert)
    reason = UcpError("the app repository declined the push")
    _revert(_Landed(prepared, None), cast(Any, None), reason)
    assert "the core repository was already changed" in reason.message
    assert reason.message.startswith("the app repository declined")
    assert reason.next == "ucp start restores both repositories to the state of ucp.yaml"

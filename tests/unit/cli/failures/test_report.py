"""Errors of the machine, which are no bugs of ucp."""

from __future__ import annotations

import errno
import os

import pytest

from k8s_ucp.cli.failures.report import report_failure


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_file_that_cannot_be_written_is_no_bug(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """EPERM is the error for an immutable file."""
    error = OSError(number, os.strerror(number), "/nowhere/ucp.yaml")
    assert report_failure(error, [], None, {}) == 1
    printed = capsys.readouterr().err
    assert "/nowhere/ucp.yaml" in printed
    assert "next: make the workspace writable" in printed

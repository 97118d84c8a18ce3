"""The remote sources of kustomizations that are rejected."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.manifests.sources import refused


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("file:///x?ref=--upload-pack=a", "the revision in"),
        ("https://g/a/b?timeout=5&version=%2d-upload-pack=a", "the revision in"),
        ("https://g/a/b?ref=+-u", None),
        ("ssh://-oProxyCommand=a/b/c?ref=v1", "the host in"),
        ("git@-oProxyCommand=a:b/c", "the host in"),
        ("git::ssh://-o/b/c", "the host in"),
        ("ext::sh -c a?ref=v1", "a program as its transport"),
        ("git::https://g/a/b?ref=v1", None),
        ("https://g/a-b//c-d?ref=v1-2", None),
        ("../../base", None),
        ("-odd-name.yaml", None),
        ("kind: A\nurl: ext::x@-y", None),
    ],
)
def test_remote_bases_that_git_would_read_as_options_are_refused(
    entry: str, words: str | None
) -> None:
    found = refused(entry)
    assert (found is None) if words is None else (found is not None and words in found)

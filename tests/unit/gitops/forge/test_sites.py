"""The forge of a repository, and the source of its token."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.forge.base import NotReady, PullRequest, until_ready
from k8s_ucp.gitops.forge.github import api_url
from k8s_ucp.gitops.forge.sites import find_site

PUBLIC = {"GITHUB_TOKEN": "h", "GITLAB_TOKEN": "l", "GITEA_TOKEN": "g"}
ALL = {**PUBLIC, "UCP_FORGE_TOKEN": "u"}


@pytest.mark.parametrize(
    ("url", "kind", "root", "path"),
    [
        ("https://github.com/octo/shop.git", "github", "https://github.com", "octo/shop"),
        ("git@github.com:octo/shop.git", "github", "https://github.com", "octo/shop"),
        ("ssh://git@github.com:22/octo/shop", "github", "https://github.com", "octo/shop"),
        ("https://octo.ghe.com/o/s", "github", "https://octo.ghe.com", "o/s"),
        ("https://github.example.org/o/s/", "github", "https://github.example.org", "o/s"),
        ("https://gitlab.com/a/b/c.git", "gitlab", "https://gitlab.com", "a/b/c"),
        ("git@gitlab.example.org:a/b", "gitlab", "https://gitlab.example.org", "a/b"),
        ("https://codeberg.org/a/b", "gitea", "https://codeberg.org", "a/b"),
        ("http://gitea.lan:3000/a/b", "gitea", "http://gitea.lan:3000", "a/b"),
    ],
)
def test_the_forge_is_derived_from_known_hosts(url: str, kind: str, root: str, path: str) -> None:
    site = find_site(url, "", ALL)

    assert (site.kind, site.root, site.path) == (kind, root, path)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({"UCP_FORGE": "gitlab"}, "gitlab"),
        ({"UCP_FORGE": "forgejo"}, "gitea"),
        ({"GITHUB_SERVER_URL": "https://git.lan"}, "github"),
        ({"GITHUB_SERVER_URL": "https://git.lan", "GITEA_ACTIONS": "true"}, "gitea"),
        ({"GITLAB_CI": "true", "CI_SERVER_HOST": "git.lan"}, "gitlab"),
    ],
)
def test_the_forge_of_other_hosts_is_derived_from_the_environment(
    environment: dict[str, str], kind: str
) -> None:
    assert find_site("https://git.lan/a/b", "", {**ALL, **environment}).kind == kind


def test_a_flag_takes_precedence() -> None:
    assert find_site("https://github.com/a/b", "gitea", ALL).kind == "gitea"


def test_the_ci_systems_host_does_not_determine_the_forge_of_another_host() -> None:
    with pytest.raises(UsageError, match="type of the forge"):
        find_site("https://git.lan/a/b", "", {**ALL, "GITHUB_SERVER_URL": "https://github.com"})


def test_the_web_url_can_differ_from_the_git_url() -> None:
    environment = {**ALL, "UCP_FORGE_URL": "https://git.lan:8443/", "UCP_FORGE": "gitea"}

    assert find_site("ssh://git@git.lan/a/b", "", environment).root == "https://git.lan:8443"


@pytest.mark.parametrize(
    "url", ["/srv/git/apps.git", "file:///srv/apps.git", "https://github.com/x"]
)
def test_a_repository_without_a_forge_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        find_site(url, "github", ALL)


@pytest.mark.parametrize(
    "url",
    [
        "https://oauth2:glpat-s3@cret@gitlab.lan/x",
        "ftp://oauth2:glpat-s3cret@gitlab.lan/a/b",
        "https://oauth2:glpat-s3cret@git.lan/a/b",
        "https://oauth2:glpat-s3#cret@git.lan/a/b",
    ],
)
def test_refusals_do_not_show_the_token_in_a_clone_url(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_site(url, "", {})
    shown = f"{caught.value.message} {caught.value.next}"
    assert "glpat" not in shown
    assert "cret" not in shown


def test_the_web_url_is_shown_without_its_password() -> None:
    with pytest.raises(UsageError, match="type of the forge") as caught:
        find_site("https://git.lan/a/b", "", {"UCP_FORGE_URL": "https://ada:s3cret@git.lan"})
    assert "s3cret" not in caught.value.message


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="type of the forge"):
        find_site("https://github.com/a/b", "bitbucket", ALL)


def test_tokens_come_from_the_environment_of_that_forge_only() -> None:
    assert find_site("https://github.com/a/b", "", PUBLIC).token == "h"
    assert find_site("https://github.com/a/b", "", ALL).token == "u"
    with pytest.raises(UsageError, match="require a token") as found:
        find_site("https://github.com/a/b", "", {"GITLAB_TOKEN": "l"})
    assert found.value.next is not None
    assert "GITHUB_TOKEN" in found.value.next


ENTERPRISE = {**PUBLIC, "GH_ENTERPRISE_TOKEN": "e"}


@pytest.mark.parametrize(
    ("url", "environment", "token"),
    [
        ("https://octo.ghe.com/a/b", {"UCP_FORGE": "github"}, "h"),
        ("https://github.example.org/a/b", {"GH_HOST": "github.example.org"}, "e"),
        (
            "https://github.example.org/a/b",
            {"GITHUB_SERVER_URL": "https://github.example.org"},
            "h",
        ),
        ("https://github.example.org/a/b", {"UCP_FORGE_URL": "https://github.example.org"}, "h"),
        ("https://gitlab.com/a/b", {}, "l"),
        ("git@gitlab.example.org:a/b", {"CI_SERVER_HOST": "gitlab.example.org"}, "l"),
        ("https://gitlab.example.org/a/b", {"GITLAB_HOST": "https://GitLab.example.org"}, "l"),
        ("https://codeberg.org/a/b", {}, "g"),
        ("http://gitea.lan:3000/a/b", {"GITEA_SERVER_URL": "http://gitea.lan:3000"}, "g"),
    ],
)
def test_a_token_goes_to_the_public_forge_or_to_the_host_that_a_variable_names(
    url: str, environment: dict[str, str], token: str
) -> None:
    assert find_site(url, "", {**ENTERPRISE, **environment}).token == token


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.example.org/a/b", "GITHUB_TOKEN"),
        ("https://github.com.example.org/a/b", "GITHUB_TOKEN"),
        ("git@github.example.org:a/b", "GITHUB_TOKEN"),
        ("https://evil-gitlab.com/a/b", "GITLAB_TOKEN"),
        ("https://gitea.example.org/a/b", "GITEA_TOKEN"),
    ],
)
def test_a_token_is_not_sent_to_a_host_that_is_only_named_like_its_forge(
    url: str, name: str, tmp_path: Path
) -> None:
    environment = {
        **ENTERPRISE,
        "GH_HOST": "git.lan",
        "GITHUB_SERVER_URL": "https://github.com",
        "CI_SERVER_HOST": "gitlab.com",
    }
    with pytest.raises(UsageError, match=f"{name} is not sent to") as refused:
        find_site(url, "", environment, tmp_path)
    assert "UCP_FORGE_TOKEN" in str(refused.value.next)
    assert find_site(url, "", {**environment, "UCP_FORGE_TOKEN": "u"}).token == "u"


def test_a_site_does_not_show_its_token() -> None:
    assert "s3cret" not in repr(find_site("https://github.com/a/b", "", {"GH_TOKEN": "s3cret"}))


def test_a_token_file_must_be_private(tmp_path: Path) -> None:
    tmp_path = tmp_path / "of a person"
    tmp_path.mkdir()
    path = tmp_path / "forge-token"
    path.write_text("f1le\n")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="other users can read") as caught:
        find_site("https://github.com/a/b", "", {}, tmp_path)
    assert shlex.split(str(caught.value.next)) == ["chmod", "600", str(path)]
    path.chmod(0o600)
    assert find_site("https://github.com/a/b", "", {}, tmp_path).token == "f1le"


@pytest.mark.parametrize("content", [b"", b"two words", b"key\nvalue\n", b"\xff\xfe"])
def test_only_a_token_is_sent_from_the_token_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "forge-token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="does not contain a valid token"):
        find_site("https://github.com/a/b", "", {}, tmp_path)


@pytest.mark.parametrize("name", ["UCP_FORGE_TOKEN", "GH_TOKEN"])
def test_a_variable_has_only_a_token(name: str) -> None:
    """Otherwise a client library says that the forge does not respond."""
    url = "https://github.com/a/b"
    assert find_site(url, "", {name: "tok\n"}).token == "tok"
    with pytest.raises(UsageError, match=f"{name} does not contain a valid token") as caught:
        find_site(url, "", {name: "s3cret\nline"})
    assert "s3cret" not in str(caught.value)


def test_merging_is_retried_until_the_forge_is_ready() -> None:
    tries: list[int] = []

    def ask(ready: int) -> bool:
        tries.append(1)
        if len(tries) < ready:
            raise NotReady(PullRequest(1, "https://x/1"), f"checking {len(tries)}")
        return True

    assert until_ready(lambda: ask(3), lambda _: None) is True
    tries.clear()
    with pytest.raises(NotReady, match="checking 20"):
        until_ready(lambda: ask(99), lambda _: None)


@pytest.mark.parametrize(
    ("root", "url"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://octo.ghe.com", "https://api.octo.ghe.com"),
        ("https://git.lan:8443", "https://git.lan:8443/api/v3"),
        ("https://notghe.com", "https://notghe.com/api/v3"),
    ],
)
def test_github_is_called_where_its_api_is(root: str, url: str) -> None:
    assert api_url(root) == url

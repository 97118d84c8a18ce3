"""One interface for the three forges, so that one test suite covers all of them."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.integration.gitops.promotion.app_repository import AppRepository
from tests.integration.gitops.promotion.fake_forges import (
    Board,
    ForgeServer,
    GitHubHandler,
    GitLabHandler,
)
from tests.integration.gitops.promotion.git_servers import TOKEN
from tests.integration.gitops.promotion.git_servers import USER as GIT_USER
from tests.integration.gitops.promotion.gitea_server import USER, Gitea
from tests.serving import serving


@dataclass(frozen=True)
class Shown:
    """A pull request as its forge shows it."""

    number: int
    url: str
    title: str
    body: str


class ForgeHost(Protocol):
    """A forge with one app repository."""

    kind: str
    repository: AppRepository
    url: str
    variables: dict[str, str]
    """Environment that a promotion needs."""

    def open_requests(self) -> list[Shown]: ...

    def close(self, number: int) -> None:
        """Close it as a person who rejects it."""

    def merge(self, number: int) -> None:
        """Merge it as a person who approves it."""

    def hold_checks(self) -> None:
        """Require a check before a merge, which is pending from now on."""

    def turn_green(self) -> None:
        """Turn the check of every open request green."""


class StandIn:
    """Stand-in for GitHub or GitLab."""

    def __init__(self, kind: str, server: ForgeServer) -> None:
        self.kind, self._server = kind, server
        self.repository, self.url = server.board.repository, server.url
        host = server.root_url.split("://")[1]
        self.variables = {
            "github": {"GH_HOST": host, "GH_ENTERPRISE_TOKEN": TOKEN, "GH_TOKEN": "not-for-it"},
            "gitlab": {"GITLAB_HOST": host, "GITLAB_TOKEN": TOKEN},
        }[kind]
        self.variables |= {
            "UCP_FORGE": kind, "UCP_GIT_USERNAME": GIT_USER, "UCP_GIT_TOKEN": TOKEN,
        }  # fmt: skip

    def open_requests(self) -> list[Shown]:
        return [
            Shown(each.number, self._page(each.number), each.title, each.body)
            for each in self._server.board.requests
            if each.state == "open"
        ]

    def _page(self, number: int) -> str:
        kind = "pull" if self.kind == "github" else "-/merge_requests"
        return f"{self._server.root_url}/{self._server.path}/{kind}/{number}"

    def close(self, number: int) -> None:
        self._server.board.get(number).state = "closed"

    def merge(self, number: int) -> None:
        request = self._server.board.get(number)
        self._server.board.squash(request, request.title, request.body)

    def hold_checks(self) -> None:
        self._server.board.green = False

    def turn_green(self) -> None:
        self._server.board.turn_green()


class RealGitea:
    """A real Gitea."""

    kind = "gitea"

    def __init__(self, gitea: Gitea, name: str, source: AppRepository) -> None:
        self._gitea, self._name = gitea, name
        gitea.call("POST", "user/repos", {"name": name, "private": True})
        # One start of Gitea for each pushed branch, which only protects its own refs/pull/.
        (gitea.repository(name) / "hooks" / "update.d" / "gitea").unlink()
        address = gitea.root.replace("://", f"://{USER}:{gitea.token}@")
        source.git("push", "--quiet", f"{address}/{USER}/{name}.git", "main")
        self._wait_until_known()
        self.repository = AppRepository.hosted_at(gitea.repository(name), source)
        self.repository.git("config", "core.logAllRefUpdates", "true")
        self.url = f"{gitea.root}/{USER}/{name}.git"
        self.variables = {
            "UCP_FORGE": "gitea", "GITEA_SERVER_URL": gitea.root, "GITEA_TOKEN": gitea.token,
            "UCP_GIT_USERNAME": USER, "UCP_GIT_TOKEN": gitea.token,
        }  # fmt: skip

    def _wait_until_known(self) -> None:
        """Gitea processes a push in the background; an empty repository has no pull requests."""
        for _ in range(200):
            if not self._gitea.call("GET", f"repos/{USER}/{self._name}")["empty"]:
                return
            time.sleep(0.1)
        raise AssertionError("Gitea has not seen the first push")

    def _repo(self, path: str) -> str:
        return f"repos/{USER}/{self._name}/{path}"

    def open_requests(self) -> list[Shown]:
        found = self._gitea.call("GET", self._repo("pulls?state=open"))
        return [
            Shown(each["number"], each["html_url"], each["title"], each["body"])
            for each in sorted(found, key=lambda each: each["number"])
        ]

    def close(self, number: int) -> None:
        self._gitea.call("PATCH", self._repo(f"pulls/{number}"), {"state": "closed"})

    def merge(self, number: int) -> None:
        shown = next(each for each in self.open_requests() if each.number == number)
        wanted = {"Do": "squash", "MergeTitleField": shown.title, "MergeMessageField": shown.body}
        for _ in range(40):
            try:
                self._gitea.call("POST", self._repo(f"pulls/{number}/merge"), wanted)
            except OSError:
                # It is still checking for conflicts.
                time.sleep(0.25)
            else:
                return
        raise AssertionError("Gitea does not merge")

    def hold_checks(self) -> None:
        wanted = {
            "rule_name": "main", "enable_push": True, "enable_status_check": True,
            "status_check_contexts": ["ci"],
        }  # fmt: skip
        self._gitea.call("POST", self._repo("branch_protections"), wanted)

    def turn_green(self) -> None:
        for each in self._gitea.call("GET", self._repo("pulls?state=open")):
            commit = each["head"]["sha"]
            self._gitea.call(
                "POST", self._repo(f"statuses/{commit}"), {"state": "success", "context": "ci"}
            )


_numbers = itertools.count()


@contextlib.contextmanager
def forge_host(
    kind: str, folder: Path, environment: dict[str, str], gitea: Gitea | None
) -> Iterator[ForgeHost]:
    """Run a forge with its own app repository until the end of the block."""
    if kind == "gitea":
        assert gitea
        source = AppRepository(folder / "source.git", environment)
        yield RealGitea(gitea, f"shop{next(_numbers)}", source)
        return
    (folder / "octo").mkdir()
    repository = AppRepository(folder / "octo" / "shop.git", environment)
    handler = {"github": GitHubHandler, "gitlab": GitLabHandler}[kind]
    server = ForgeServer(folder, environment, Board(repository), handler)
    with serving(server):
        yield StandIn(kind, server)

"""Stand-ins for GitHub and GitLab: real git repositories behind the few API calls that ucp makes.

They implement the rules that matter: one open request per branch, squash merges on the newest base,
pending or green checks, and each host's own error messages. Gitea needs no stand-in: the real one
runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.integration.gitops.promotion.app_repository import AppRepository
from tests.integration.gitops.promotion.git_servers import TOKEN, GitHandler, GitServer


@dataclass
class Request:
    """A pull or merge request."""

    number: int
    head: str
    base: str
    title: str
    body: str
    state: str = "open"
    auto: tuple[str, str, str] | None = None
    """Scheduled merge: (title, body, commit)."""
    asked_to_merge: int = 0


@dataclass
class Board:
    """The requests of one repository."""

    repository: AppRepository
    requests: list[Request] = field(default_factory=list)
    green: bool = True
    lock: threading.RLock = field(default_factory=threading.RLock)

    def open_for(self, head: str, base: str) -> list[Request]:
        return [
            each
            for each in self.requests
            if (each.state, each.head, each.base) == ("open", head, base)
        ]

    def add(self, head: str, base: str, title: str, body: str) -> Request | None:
        with self.lock:
            there = self.repository.git("for-each-ref", f"refs/heads/{head}")
            if not there or self.open_for(head, base):
                return None
            self.requests.append(Request(len(self.requests) + 1, head, base, title, body))
            return self.requests[-1]

    def get(self, number: int) -> Request:
        return self.requests[number - 1]

    def conflicts(self, request: Request) -> bool:
        base, head = (f"refs/heads/{each}" for each in (request.base, request.head))
        try:
            self.repository.git("merge-tree", "--write-tree", base, head)
        except AssertionError:
            return True
        return False

    def commit_of(self, branch: str) -> str:
        return self.repository.git("rev-parse", f"refs/heads/{branch}").strip()

    def squash(self, request: Request, title: str, body: str) -> None:
        """Squash as forges do: one commit on the base with the result of a merge."""
        git = self.repository.git
        base, head = f"refs/heads/{request.base}", f"refs/heads/{request.head}"
        # It exits with 1 if there are conflicts.
        tree = git("merge-tree", "--write-tree", base, head).split()[0]
        who = ["-c", "user.name=forge", "-c", "user.email=forge@example.org"]
        text = f"{title} (#{request.number})\n\n{body}"
        new = git(*who, "commit-tree", "-p", base, "-m", text, tree).strip()
        git("update-ref", base, new, self.commit_of(request.base))
        git("update-ref", "-d", head)
        request.state = "merged"
        for each in self.requests:
            if (each.state, each.head) == ("open", request.head):
                each.state = "closed"

    def turn_green(self) -> None:
        with self.lock:
            self.green = True
            for each in self.requests:
                if each.state == "open" and each.auto:
                    self.squash(each, *each.auto[:2])


class ForgeServer(GitServer):
    """git and an API at one address. owner/name: path of its only repository."""

    path = "octo/shop"

    def __init__(
        self, root: Path, environment: dict[str, str], board: Board, handler: type[GitHandler]
    ) -> None:
        super().__init__(root, environment, auth=True, handler=handler)
        self.board = board

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root_url}/{self.path}.git"


class _ApiHandler(GitHandler):
    server: ForgeServer  # type: ignore[assignment]
    prefix: str

    do_PATCH = do_PUT = GitHandler.do_POST  # noqa: N815 (names of http.server)

    def route(self) -> None:
        if not self.path.startswith("/api/"):
            return super().route()
        self.server.seen.append(f"{self.command} {self.path}")
        body = json.loads(self.body() or b"{}")
        if not self._authorized():
            return self.reply(401, {"message": "Bad credentials"})
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        with self.server.board.lock:
            status, data = self.call(parts.path, query, body)
        return self.reply(status, data)

    def _authorized(self) -> bool:
        raise NotImplementedError

    def call(self, path: str, query: Mapping[str, str], body: Mapping[str, Any]) -> tuple[int, Any]:
        raise NotImplementedError

    def reply(self, status: int, data: Any) -> None:
        content = json.dumps(data).encode()
        self.send(status, [("Content-Type", "application/json; charset=utf-8")], content)


class GitHubHandler(_ApiHandler):
    """https://docs.github.com/rest/pulls and the mutation enablePullRequestAutoMerge."""

    def _authorized(self) -> bool:
        return self.headers.get("Authorization", "").split(" ")[-1] == TOKEN

    def call(self, path: str, query: Mapping[str, str], body: Mapping[str, Any]) -> tuple[int, Any]:
        board, repository = self.server.board, f"/api/v3/repos/{self.server.path}"
        pulls = f"{repository}/pulls"
        if path == repository:
            url = f"{self.server.root_url}{repository}"
            return 200, {"id": 7, "full_name": self.server.path, "url": url}
        if path == "/api/graphql":
            return self._enable(body["variables"]["input"])
        if path == pulls and self.command == "GET":
            owner, _, head = query["head"].partition(":")
            assert owner == self.server.path.split("/")[0]
            return 200, [self._show(each) for each in board.open_for(head, query["base"])]
        if path == pulls:
            made = board.add(body["head"], body["base"], body["title"], body["body"])
            if made is None:
                error = f"A pull request already exists for octo:{body['head']}."
                return 422, {"message": "Validation Failed", "errors": [{"message": error}]}
            return 201, self._show(made)
        if not path.startswith(pulls + "/"):
            return 404, {"message": "Not Found"}
        number, _, rest = path.removeprefix(pulls + "/").partition("/")
        request = board.get(int(number))
        if rest == "merge":
            return self._merge(request, body)
        if self.command == "PATCH":
            request.title, request.body = (
                body.get("title", request.title), body.get("body", request.body)
            )  # fmt: skip
            request.state = body.get("state", request.state)
        return 200, self._show(request)

    def _enable(self, wanted: Mapping[str, Any]) -> tuple[int, Any]:
        board = self.server.board
        request = board.get(int(wanted["pullRequestId"].removeprefix("PR_")))
        if request.state != "open":
            return self._wrong("Pull request is closed")
        if wanted["expectedHeadOid"] != board.commit_of(request.head):
            return self._wrong("Head branch was modified. Review and try the merge again.")
        if board.green:
            return self._wrong("Pull request Pull request is in clean status")
        assert wanted["mergeMethod"] == "SQUASH"
        request.auto = (
            wanted["commitHeadline"], wanted["commitBody"], wanted["expectedHeadOid"]
        )  # fmt: skip
        answer = {"actor": {"login": "ci"}, "clientMutationId": None}
        return 200, {"data": {"enablePullRequestAutoMerge": answer}}

    @staticmethod
    def _wrong(message: str) -> tuple[int, Any]:
        errors = [{"type": "UNPROCESSABLE", "message": message}]
        return 200, {"data": {"enablePullRequestAutoMerge": None}, "errors": errors}

    def _merge(self, request: Request, body: Mapping[str, Any]) -> tuple[int, Any]:
        request.asked_to_merge += 1
        late = request.state != "open" or self.server.board.conflicts(request)
        if request.asked_to_merge == 1 or late:
            return 405, {"message": "Pull Request is not mergeable"}
        if body["sha"] != self.server.board.commit_of(request.head):
            return 409, {"message": "Head branch was modified. Review and try the merge again."}
        assert body["merge_method"] == "squash"
        self.server.board.squash(request, body["commit_title"], body["commit_message"])
        return 200, {"merged": True, "sha": "0" * 40, "message": "merged"}

    def _show(self, request: Request) -> dict[str, Any]:
        root = f"{self.server.root_url}/{self.server.path}"
        api = f"{self.server.root_url}/api/v3/repos/{self.server.path}/pulls/{request.number}"
        return {
            "number": request.number,
            "node_id": f"PR_{request.number}",
            "url": api,
            "html_url": f"{root}/pull/{request.number}",
            "state": "open" if request.state == "open" else "closed",
            "title": request.title,
            "body": request.body,
            "head": {"ref": request.head, "repo": {"id": 7}},
            "base": {"ref": request.base, "repo": {"id": 7}},
        }


class GitLabHandler(_ApiHandler):
    """https://docs.gitlab.com/api/merge_requests/."""

    def _authorized(self) -> bool:
        return self.headers.get("PRIVATE-TOKEN") == TOKEN

    def call(self, path: str, query: Mapping[str, str], body: Mapping[str, Any]) -> tuple[int, Any]:
        board = self.server.board
        project, _, rest = path.removeprefix("/api/v4/projects/").partition("/")
        if unquote(project) != self.server.path or not rest.startswith("merge_requests"):
            return 404, {"message": "404 Project Not Found"}
        number, _, action = rest.removeprefix("merge_requests").strip("/").partition("/")
        if not number and self.command == "GET":
            assert query["state"] == "opened"
            found = board.open_for(query["source_branch"], query["target_branch"])
            return 200, [self._show(each) for each in found]
        if not number:
            made = board.add(
                body["source_branch"], body["target_branch"], body["title"], body["description"]
            )
            if made is None:
                text = "Another open merge request already exists for this source branch: !1"
                return 409, {"message": [text]}
            return 201, self._show(made)
        request = board.get(int(number))
        if action == "merge":
            return self._merge(request, body)
        if body.get("state_event") == "close":
            request.state = "closed"
            return 200, self._show(request)
        request.title, request.body = body["title"], body["description"]
        return 200, self._show(request)

    def _merge(self, request: Request, body: Mapping[str, Any]) -> tuple[int, Any]:
        board = self.server.board
        request.asked_to_merge += 1
        late = request.state != "open" or self.server.board.conflicts(request)
        if request.asked_to_merge == 1 or late:
            return 405, {"message": "405 Method Not Allowed"}
        if body["sha"] != board.commit_of(request.head):
            return 409, {"message": "SHA does not match HEAD of source branch"}
        title, _, text = body["squash_commit_message"].partition("\n\n")
        assert body["squash"]
        if board.green:
            board.squash(request, title, text)
        else:
            request.auto = (title, text, body["sha"])
        return 200, self._show(request)

    def _show(self, request: Request) -> dict[str, Any]:
        return {
            "iid": request.number,
            "id": 1000 + request.number,
            "web_url": f"{self.server.root_url}/{self.server.path}/-/merge_requests/"
            f"{request.number}",
            "state": {"open": "opened"}.get(request.state, request.state),
            "title": request.title,
            "description": request.body,
            "source_project_id": 1,
            "target_project_id": 1,
            "source_branch": request.head,
            "target_branch": request.base,
        }

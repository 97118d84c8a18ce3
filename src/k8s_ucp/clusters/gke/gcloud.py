"""Runs `gcloud` with a service account key, isolated from the user's own gcloud configuration.

The key is passed in a private file named in the environment; argv contains only names. gcloud's
configuration is in our own folder, so that the user's logins and projects are neither used nor
changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from k8s_ucp import process
from k8s_ucp.clusters.gke import gcloud_failures
from k8s_ucp.errors import CommandFailed, ProgramMissing, UcpError
from k8s_ucp.workspace import make_private_folder

CALL_SECONDS = 60.0
"""Timeout of one call; gcloud takes about a second to start."""
LEFT_SECONDS = 10 * CALL_SECONDS
"""A key file that is older was left by a process that was killed."""


@dataclass(frozen=True)
class Account:
    """Project and service account of the key."""

    project: str
    email: str


class Gcloud:
    """gcloud as one service account in one project."""

    def __init__(self, folder: Path, key: Callable[[], str], project: str | None = None) -> None:
        """folder: gcloud's private configuration; created only if its parent exists.

        key: reads the key (JSON); raises UcpError. project: overrides the project in the key.
        """
        self._folder = folder
        self._read_key = key
        self._project = project

    @cached_property
    def account(self) -> Account:
        """Raises UcpError if the key is invalid, or no project is in it or in the environment."""
        try:
            key = json.loads(self._key)
            email, kind = str(key["client_email"]), key["type"]
            named = self._project or key.get("project_id")
            project = named or os.environ.get("CLOUDSDK_CORE_PROJECT", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            kind = None
        if kind != "service_account":
            raise UcpError(
                "the gcp credential is not a service account key",
                next="gcloud iam service-accounts keys create creds/gcp.json --iam-account "
                "NAME@PROJECT.iam.gserviceaccount.com",
            )
        if not project:
            raise UcpError(
                "no Google Cloud project is set: the gcp credential has no project_id",
                next="export CLOUDSDK_CORE_PROJECT=PROJECT, then run the command again",
            )
        return Account(str(project), email)

    def json(self, *arguments: str, timeout: float = CALL_SECONDS) -> Any:
        """Call gcloud and parse its JSON output; None if the output is empty.

        Raises UcpError with an explanation, DeadlineExceeded.
        """
        text = self._run([*arguments, "--format=json"], timeout)
        return json.loads(text) if text.strip() else None

    def list_clusters(self, filter_: str) -> tuple[list[Any], str]:
        """Clusters, and the zones that did not respond, whose clusters the list lacks.

        gcloud succeeds in that case and only warns.
        """
        silent: list[str] = []

        def hear(line: str) -> None:
            if found := gcloud_failures.SILENT_ZONES.search(line):
                silent.append(found[1])

        arguments = ("container", "clusters", "list", f"--filter={filter_}", "--format=json")
        text = self._run(arguments, CALL_SECONDS, hear)
        return (json.loads(text) if text.strip() else None) or [], ", ".join(silent)

    def find(self, *arguments: str) -> Any:
        """Like `json`, but None if the object does not exist."""
        try:
            return self.json(*arguments)
        except gcloud_failures.NotThere:
            return None

    def token(self) -> str:
        """An access token of the account, valid for about an hour."""
        return self._run(["auth", "print-access-token"], CALL_SECONDS).strip()

    @cached_property
    def _key(self) -> str:
        return self._read_key()

    def _run(
        self, arguments: Sequence[str], timeout: float, on_line: Callable[[str], None] | None = None
    ) -> str:
        account = self.account
        with self._environment(account) as environment:
            try:
                return process.run(
                    ["gcloud", *arguments, f"--project={account.project}", "--quiet"],
                    timeout=timeout,
                    env=environment,
                    on_line=on_line,
                )
            except CommandFailed as error:
                raise gcloud_failures.explain(
                    error, arguments, account.project, account.email
                ) from (error)
            except ProgramMissing as error:
                raise ProgramMissing(
                    "gcloud is not installed",
                    next="install the Google Cloud CLI: https://cloud.google.com/sdk/docs/install",
                ) from error

    @contextmanager
    def _environment(self, account: Account) -> Iterator[dict[str, str]]:
        with contextlib.ExitStack() as stack:
            if self._folder.parent.is_dir():
                folder = self._folder
                make_private_folder(folder)
                _remove_left_keys(folder)
            else:
                # Nothing was created yet, and a check must leave nothing behind.
                temporary = tempfile.TemporaryDirectory(prefix="ucp-gcloud-")
                folder = Path(stack.enter_context(temporary))
            descriptor, name = tempfile.mkstemp(prefix=".key-", dir=folder)
            stack.callback(Path(name).unlink, missing_ok=True)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(self._key)
            foreign = ("CLOUDSDK_", "GOOGLE_APPLICATION_CREDENTIALS")
            kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
            yield kept | {
                "CLOUDSDK_CONFIG": str(folder),
                "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE": name,
                "CLOUDSDK_CORE_PROJECT": account.project,
                "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
                "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
                "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
            }


def _remove_left_keys(folder: Path) -> None:
    for each in folder.glob(".key-*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - each.stat().st_mtime > LEFT_SECONDS:
                each.unlink()

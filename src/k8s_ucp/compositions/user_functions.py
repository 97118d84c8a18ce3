"""Runs functions that users wrote, `api/functions/<name>/main.py` of the core repository.

Each has its own process as long as its code stays the same. A process that hangs is killed; one
that exited is restarted by the next request. The reason is the response.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import crossplane.function.proto.v1.run_function_pb2 as messages

from k8s_ucp.compositions.function import CompositionError, Function, Request, Response
from k8s_ucp.compositions.messages import message_of, response_of
from k8s_ucp.compositions.user_code import FOLDER, MAIN
from k8s_ucp.compositions.user_worker import LENGTH_BYTES, frame
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository

SECONDS = 10.0
"""Timeout of one request."""
_KEPT_VARIABLES = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    *("UCP_SUPERVISOR", "SUPERVISOR_SERVER_URL"),
)
"""The last two identify the topology that the process belongs to."""


@dataclass
class UserFunction:
    """folder: contains main.py. seconds: timeout of a request."""

    folder: Path
    seconds: float = SECONDS
    _process: Process | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, request: bytes) -> bytes:
        """Serialized response to a serialized request. Raises CompositionError."""
        async with self._turn:
            process = self._process
            if process is None or process.returncode is not None:
                process = await self._launch()
            # Unset until it responds: a late response must not be taken for the next request's.
            self._process = None
            try:
                answered = await asyncio.wait_for(_exchange(process, request), self.seconds)
            except TimeoutError:
                raise CompositionError(f"no answer within {self.seconds:g} seconds") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise CompositionError(await _ending(process)) from None
            else:
                self._process = process
                return answered
            finally:
                if self._process is None:
                    await _end(process)

    async def replace(self, files: Mapping[str, bytes]) -> None:
        """Use other code from the next request on."""
        async with self._turn:
            await self._stop()
            shutil.rmtree(self.folder, ignore_errors=True)
            for path, content in files.items():
                if ".." in PurePosixPath(path).parts:
                    raise CompositionError(f"{path} is not a path in a repository")
                file = self.folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)

    async def close(self) -> None:
        async with self._turn:
            await self._stop()

    async def _launch(self) -> Process:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "k8s_ucp.compositions.user_worker", str(self.folder)),
            stdin=PIPE,
            stdout=PIPE,
            env={**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
        )

    async def _stop(self) -> None:
        if self._process is not None:
            await _end(self._process)
            self._process = None


@dataclass
class CommittedFunction:
    """A function from the core repository's branch: a push applies from the next request on."""

    name: str
    repository: Repository
    branch: str
    process: UserFunction
    _known: Mapping[str, str] | None = None
    """Object ids of its files."""

    async def answer(self, request: bytes) -> bytes:
        """Like UserFunction.answer. Raises CompositionError."""
        try:
            await self._settle()
        except UcpError as error:
            raise CompositionError(f"failed to read {self._path}: {error.message}") from error
        if f"{self._path}/{MAIN}" not in (self._known or {}):
            raise CompositionError(f"the core repository has no {self._path}/{MAIN}")
        return await self.process.answer(request)

    async def _settle(self) -> None:
        listing = await asyncio.to_thread(self.repository.listing, self.branch, f"{self._path}/")
        ids = {path: entry.id for path, entry in listing.items() if entry.mode.startswith("100")}
        if ids == self._known:
            return
        contents = await asyncio.to_thread(self.repository.contents, ids.values())
        files = {path.removeprefix(f"{self._path}/"): contents[id] for path, id in ids.items()}
        await self.process.replace(files)
        self._known = ids

    @property
    def _path(self) -> str:
        return f"{FOLDER}/{self.name}"


def in_folder(folder: Path) -> Function:
    """A function from a folder, with one process per request. Raises CompositionError."""

    async def once(request: bytes) -> bytes:
        process = UserFunction(folder)
        try:
            return await process.answer(request)
        finally:
            await process.close()

    def compose(request: Request) -> Response:
        return _plain(lambda asked: asyncio.run(once(asked)), request)

    return compose


def _plain(call: Callable[[bytes], bytes], request: Request) -> Response:
    answered = messages.RunFunctionResponse()
    answered.ParseFromString(call(message_of(request).SerializeToString()))
    return response_of(answered)


async def _exchange(process: Process, request: bytes) -> bytes:
    assert process.stdin
    assert process.stdout
    process.stdin.write(frame(request))
    await process.stdin.drain()
    length = await process.stdout.readexactly(LENGTH_BYTES)
    return await process.stdout.readexactly(int.from_bytes(length, "big"))


async def _ending(process: Process) -> str:
    """Why a process does not respond any more."""
    with suppress(TimeoutError):
        code = await asyncio.wait_for(process.wait(), 1)
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with exit status {code}"
    return "its process closed its output"


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()

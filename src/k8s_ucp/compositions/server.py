"""Serves composition functions to Crossplane: gRPC with mutual TLS on this machine.

`python -m k8s_ucp.compositions.server --address HOST:PORT --certificates DIR`. The folder contains
tls.crt, tls.key and the ca.crt that also signed Crossplane's client certificate. Requests do not
name their function, so each user function has its own socket: `--function NAME=PATH`, with
`--repository` and `--branch` of its code, and `--code`, a folder to run it in.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
from crossplane.function import runtime
from crossplane.function.proto.v1.run_function_pb2 import RunFunctionResponse
from crossplane.function.proto.v1.run_function_pb2_grpc import (
    FunctionRunnerServiceServicer,
    add_FunctionRunnerServiceServicer_to_server,
)

from k8s_ucp.compositions import messages, patch_and_transform
from k8s_ucp.compositions.function import CompositionError, Function
from k8s_ucp.compositions.user_functions import CommittedFunction, UserFunction
from k8s_ucp.git.repository import Repository

Answer = Callable[[Any], Awaitable[Any]]
"""From a RunFunctionRequest to its response."""

CPU_SECONDS = 2.0
"""For one request of our own function; it usually takes some milliseconds."""


class FunctionServer(FunctionRunnerServiceServicer):  # type: ignore[misc]
    """The gRPC service that Crossplane calls."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def RunFunction(self, request: Any, _context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return await self._answer(request)


def answer(request: Any, function: Function) -> Any:
    """The response to a RunFunctionRequest; also for a failure, whose text Crossplane shows."""
    try:
        return messages.answer(request, function(messages.request_of(request)))
    except CompositionError as error:
        return _failure(request, str(error))
    except Exception as error:  # noqa: BLE001 (one composite's failure is not the others')
        return _failure(request, f"{type(error).__name__}: {error}")


def _failure(request: Any, text: str) -> Any:
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} failed: {text}\n")
    sys.stdout.flush()
    return messages.failure(request, text)


async def of_ours(request: Any) -> Any:
    """The response of our own function, which runs in the thread that serves all functions."""
    with _limited(CPU_SECONDS):
        return answer(request, patch_and_transform.compose)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes more CPU time, by a CompositionError; in the main thread only.

    A regular expression such as `(a+)+$` takes linear time in Crossplane's own function, which is
    written in Go, but exponential time in Python if the value doesn't match.
    """

    def interrupt(*_: object) -> None:
        raise CompositionError(f"no answer within {seconds:g} seconds of CPU time")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _of_users(function: CommittedFunction) -> Answer:
    async def call(request: Any) -> Any:
        response = RunFunctionResponse()
        try:
            response.ParseFromString(await function.answer(request.SerializeToString()))
        except CompositionError as error:
            return _failure(request, f"function {function.name}: {error}")
        return response

    return call


async def _serve(functions: dict[str, Answer], credentials: Any) -> None:
    """Serve until SIGTERM. functions: by address."""
    servers = []
    for address, each in functions.items():
        server = grpc.aio.server()
        add_FunctionRunnerServiceServicer_to_server(FunctionServer(each), server)
        server.add_secure_port(address, credentials)
        await server.start()
        servers.append(server)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await asyncio.gather(*(each.stop(grace=0) for each in servers))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--certificates", required=True)
    parser.add_argument("--function", action="append", default=[])
    parser.add_argument("--repository", type=Path)
    parser.add_argument("--branch")
    parser.add_argument("--code", type=Path)
    given = parser.parse_args()
    functions: dict[str, Answer] = {given.address: of_ours}
    for each in given.function:
        name, _, socket = each.partition("=")
        process = UserFunction(given.code / name)
        function = CommittedFunction(name, Repository(given.repository), given.branch, process)
        functions[f"unix:{socket}"] = _of_users(function)
    asyncio.run(_serve(functions, runtime.load_credentials(given.certificates)))


if __name__ == "__main__":
    main()

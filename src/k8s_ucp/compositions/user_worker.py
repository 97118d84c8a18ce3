"""The process of one user function, separate so that a crash affects no other function.

`python -m k8s_ucp.compositions.user_worker FOLDER` calls `compose(req, rsp)` of FOLDER/main.py for
each request on stdin (a RunFunctionRequest, preceded by its length in four bytes), and writes the
response to stdout in the same format. Output of the function goes to stderr.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import crossplane.function.proto.v1.run_function_pb2 as messages
from crossplane.function import response

from k8s_ucp.compositions.messages import failure
from k8s_ucp.compositions.user_code import MAIN

LENGTH_BYTES = 4
ALARM_SECONDS = 60
"""Ends this process if its parent is gone and can't."""

Compose = Callable[[Any, Any], None]


def frame(content: bytes) -> bytes:
    """A message with its length in front, as it is sent over the socket."""
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def answer(request: Any, compose: Compose) -> Any:
    """The response of `compose`, or the error that it raised."""
    found = response.to(request)
    try:
        compose(request, found)
    except Exception as error:  # noqa: BLE001 (what it may raise is not known here)
        return failure(request, _reason(error))
    return found


def load(folder: Path) -> Compose:
    """`compose` of main.py; if that can't be loaded, a function that reports the reason."""
    sys.path.insert(0, str(folder))
    try:
        found: Compose = importlib.import_module(MAIN.removesuffix(".py")).compose
    except (Exception, SystemExit) as error:  # noqa: BLE001
        reason = f"{MAIN} can't be loaded: {_reason(error)}"

        def refuse(_request: Any, rsp: Any) -> None:
            response.fatal(rsp, reason)

        return refuse
    return found


def _reason(error: BaseException) -> str:
    """The error with the line of the user's code; the whole traceback goes to the log."""
    traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename.startswith(sys.path[0] + os.sep)]
    location = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{location}"


def _serve(compose: Compose, requests: BinaryIO, responses: BinaryIO) -> None:
    while head := requests.read(LENGTH_BYTES):
        request = messages.RunFunctionRequest()
        request.ParseFromString(requests.read(int.from_bytes(head, "big")))
        signal.alarm(ALARM_SECONDS)
        responses.write(frame(answer(request, compose).SerializeToString()))
        responses.flush()
        signal.alarm(0)


def main() -> None:
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _serve(load(Path(sys.argv[1])), requests, responses)


if __name__ == "__main__":
    main()

"""The process of the simulated cloud: moto behind a layer with ledger, faults and recording.

Calls are serialized: the ledger has the order in which things happened, and moto's ids depend on
the number of the call.
"""

from __future__ import annotations

import hmac
import importlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from k8s_ucp.bounded_server import BoundedConnections
from k8s_ucp.cloud.call import ApiCall, HttpRequest, read_call, read_scope, service_model
from k8s_ucp.cloud.faults import CloudFault, as_items, read_faults, take
from k8s_ucp.cloud.ledger import RESET, CloudLedger, CloudLedgerEntry
from k8s_ucp.cloud.recording import ACCOUNT_HEADER, Recording
from k8s_ucp.cloud.resources import effect_of, id_of
from k8s_ucp.errors import UcpError

LOG = logging.getLogger("cloud")
ADMIN = "/_ucp/"
HANG = 600.0
"""Seconds until a hanging call is dropped; clients time out earlier."""
_ACCOUNT = "123456789012"
"""moto's default account. Without it, moto looks the access key up in IAM of all partitions, and
creates each of these with all of AWS's managed policies, which takes most of a second."""
_FIRST = ("ec2", "iam", "rds")
"""Services for environments and databases. Not EKS, which draws an id when it is imported."""

StartResponse = Callable[..., Any]


@dataclass(frozen=True)
class _Answer:
    """moto's response to a request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class SimulatedCloud:
    """A WSGI application: AWS's API, and the cloud's own API below `/_ucp/`.

    folder: of the ledger and the recording. access_key: the only valid one. token: for the own API.
    restart: restarts this process, a moment later.
    """

    def __init__(
        self,
        folder: Path,
        access_key: str,
        token: str,
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        self.ledger = CloudLedger(folder / "ledger.jsonl")
        self.recording = Recording(folder / "recording.jsonl")
        self._access_key, self._token, self._restart = access_key, token, restart
        self._emptied = False
        self._moto = threading.Lock()
        self._rules = threading.Lock()
        self._faults: tuple[CloudFault, ...] = ()
        self._touched: set[tuple[str, str]] = set()
        """(service, region) pairs already used: the first call makes moto create a region's
        defaults."""
        self._number = max((each.number for each in self.ledger.entries()), default=0)
        self._application = _moto()
        self._replay()

    def __call__(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        request = _without_body(environ)
        if request.path.startswith(ADMIN):
            return self._administer(request, environ, start)
        # Any user of this machine can connect: nobody else makes us wait for a body, or keep one.
        scope = read_scope(request)
        service = scope.service if scope else None
        if scope is None or not _is_same(scope.access_key, self._access_key):
            message = "the access key is not valid"
            return _refuse(service, 403, "InvalidClientTokenId", message, start)
        request = _with_body(request, environ)
        call = read_call(request)
        if call is None:
            message = f"the simulated cloud has no such operation of {service}"
            return _refuse(service, 400, "InvalidAction", message, start)
        with self._rules:
            fault, self._faults = take(self._faults, call)
        if fault and (answer := _before(fault, call, environ, start)) is not None:
            return answer
        if not call.changes:
            return self._look(call, request, start)
        return self._change(
            call, request, environ, start, lost=bool(fault and fault.kind == "lost")
        )

    def _look(self, call: ApiCall, request: HttpRequest, start: StartResponse) -> Iterable[bytes]:
        with self._moto:
            if (call.service, call.region) in self._touched:
                return self._pass(request, start)
            self._number += 1
            self.recording.append(self._number, request)
            answer = self._played(self._number, call, request)
        start(f"{answer.status} -", answer.headers)
        return [answer.body]

    def _change(
        self,
        call: ApiCall,
        request: HttpRequest,
        environ: Mapping[str, Any],
        start: StartResponse,
        *,
        lost: bool,
    ) -> Iterable[bytes]:
        with self._moto:
            self._number += 1
            self.recording.append(self._number, request)
            answer = self._played(self._number, call, request)
            self._record(_entry(self._number, call, answer, answered=not lost))
        if lost:
            return _drop(environ)
        start(f"{answer.status} -", answer.headers)
        return [answer.body]

    def _record(self, entry: CloudLedgerEntry) -> None:
        self.ledger.append(entry)
        what = f"{entry.region} {entry.service}:{entry.operation} {entry.id or '-'}"
        LOG.info("%d %s %d", entry.number, what, entry.status)

    def _played(self, number: int, call: ApiCall, request: HttpRequest) -> _Answer:
        from moto.moto_api._internal import mock_random

        self._touched.add((call.service, call.region))
        mock_random.seed(number)
        responses: list[tuple[int, list[tuple[str, str]]]] = []

        def note(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            responses.append((int(status.split()[0]), headers))

        body = b"".join(self._pass(request, note))
        return _Answer(*responses[-1], body)

    def _pass(self, request: HttpRequest, start: StartResponse) -> Iterable[bytes]:
        from werkzeug.test import EnvironBuilder

        builder = EnvironBuilder(
            method=request.method,
            path=request.path,
            query_string=request.query,
            headers=list(request.headers.items()),
            data=request.body,
        )
        answer: Iterable[bytes] = self._application(builder.get_environ(), start)
        return answer

    def _replay(self) -> None:
        """Recreate the cloud by replay; adds calls to the ledger that a crash kept out of it."""
        replayed, emptied = set[int](), 0
        for entry in self.ledger.entries():
            replayed.add(entry.number)
            emptied = entry.number if entry.operation == RESET else emptied
        for each in self.recording.requests():
            self._number = max(self._number, each.number)
            call = read_call(each.request)
            if call is None or each.number < emptied:
                continue
            answer = self._played(each.number, call, each.request)
            if call.changes and each.number not in replayed:
                self._record(_entry(each.number, call, answer, answered=False))

    def reset(self) -> None:
        """Empty the cloud; this process serves nothing more.

        moto keeps state through its own reset, so that ids would depend on the past. The ledger
        records the reset first, so that earlier requests are never replayed. Numbers continue, so
        no id is reused.
        """
        self._moto.acquire()
        self._emptied = True
        self._record(CloudLedgerEntry(self._number + 1, time.time(), "", "ucp", RESET, "", 200))
        self.recording.clear()
        self._restart()

    def _administer(
        self, request: HttpRequest, environ: Mapping[str, Any], start: StartResponse
    ) -> Iterable[bytes]:
        what = request.path.removeprefix(ADMIN)
        if what == "health":
            return _json(start, 503 if self._emptied else 200, {"number": self._number})
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not _is_same(given, self._token):
            return _json(start, 403, {"error": "the token is not valid"})
        if what == "ledger":
            return _json(start, 200, [asdict(each) for each in self.ledger.entries()])
        if what == "reset" and request.method == "POST":
            self.reset()
            return _json(start, 200, {})
        if what == "faults" and request.method in ("PUT", "POST"):
            try:
                given_faults = read_faults(json.loads(_with_body(request, environ).body))
            except (UcpError, ValueError) as error:
                return _json(start, 400, {"error": str(error)})
            with self._rules:
                kept = self._faults if request.method == "POST" else ()
                self._faults = (*kept, *given_faults)
        if what == "faults":
            return _json(start, 200, as_items(self._faults))
        return _json(start, 404, {"error": f"nothing is at {request.path}"})


def warm_up() -> None:
    """Import the modules that a topology calls first, which takes seconds, while nobody waits.

    No more than that: moto's applications draw ids for their regions' default resources, which
    belong to the first call and must be the same when it is replayed.
    """
    for service in _FIRST:
        service_model(service)
        for part in ("models", "responses", "urls"):
            importlib.import_module(f"moto.{service}.{part}")
    LOG.info("loaded %s", ", ".join(_FIRST))


def server_on(listener: socket.socket, application: Callable[..., Iterable[bytes]]) -> Any:
    """The HTTP server on a listening socket; serve_forever() handles requests."""
    from werkzeug.serving import ThreadedWSGIServer

    class Server(BoundedConnections, ThreadedWSGIServer):
        """Any user of this machine can connect."""

    host, port = listener.getsockname()
    return Server(host, port, application, fd=listener.fileno())


def read_endpoints_once() -> None:
    """Cache AWS's endpoints between sessions of boto3.

    moto creates a session for each list of regions and for each role of EKS. Each would read all of
    AWS's endpoints again: a tenth of a second, most of the time of such a call. Models of services
    are still read by each session, because clients change them.
    """
    from botocore.loaders import JSONFileLoader, Loader

    read: dict[str, Any] = {}

    class ReadOnce(JSONFileLoader):  # type: ignore[misc]
        def load_file(self, file_path: str) -> Any:
            if Path(file_path).name not in ("endpoints", "partitions"):
                return super().load_file(file_path)
            if file_path not in read:
                read[file_path] = super().load_file(file_path)
            return read[file_path]

    Loader.FILE_LOADER_CLASS = ReadOnce


def _moto() -> Any:
    # EKS roles use AWS's managed policies, which moto loads only with this variable.
    os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"
    read_endpoints_once()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    return DomainDispatcherApplication(create_backend_app)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _without_body(environ: Mapping[str, Any]) -> HttpRequest:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    path, _, query = str(environ.get("RAW_URI") or environ["PATH_INFO"]).partition("?")
    return HttpRequest(
        environ["REQUEST_METHOD"], path, query, {**headers, ACCOUNT_HEADER: _ACCOUNT}
    )


def _with_body(request: HttpRequest, environ: Mapping[str, Any]) -> HttpRequest:
    length = str(environ.get("CONTENT_LENGTH") or "")
    body = environ["wsgi.input"].read(int(length)) if length.isdecimal() else b""
    return replace(request, body=body)


def _before(
    fault: CloudFault, call: ApiCall, environ: Mapping[str, Any], start: StartResponse
) -> Iterable[bytes] | None:
    """The response of a fault that prevents a call; None if the call is to be performed."""
    if fault.kind == "unavailable":
        return _refuse(
            call.service, 503, "ServiceUnavailable", "the service is not available", start
        )
    if fault.kind == "throttle":
        code = "RequestLimitExceeded" if call.service == "ec2" else "Throttling"
        status = 503 if call.service == "ec2" else 400
        return _refuse(call.service, status, code, "rate exceeded", start)
    if fault.kind == "hang":
        time.sleep(fault.seconds or HANG)
        return _drop(environ)
    time.sleep(fault.seconds)
    return None


def _refuse(
    service: str | None, status: int, code: str, message: str, start: StartResponse
) -> Iterable[bytes]:
    """An error in the service's protocol. service: None if the request isn't signed."""
    model = service_model(service) if service else None
    protocol = model.resolved_protocol if model else "query"
    if "json" in protocol:
        body, kind = json.dumps({"__type": code, "message": message}), "application/json"
    else:
        error, kind = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>", "text/xml"
        if protocol == "ec2":
            body = f"<Response><Errors>{error}</Errors></Response>"
        else:
            body = f"<ErrorResponse>{error}</ErrorResponse>"
    start(f"{status} -", [("Content-Type", kind), ("x-amzn-ErrorType", code)])
    return [body.encode()]


def _drop(environ: Mapping[str, Any]) -> Iterable[bytes]:
    """Close the connection without a response."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("the answer is lost on purpose")


def _entry(number: int, call: ApiCall, answer: _Answer, *, answered: bool) -> CloudLedgerEntry:
    effect = effect_of(call.service, call.operation)
    return CloudLedgerEntry(
        number=number,
        time=time.time(),
        region=call.region,
        service=call.service,
        operation=call.operation,
        caller=call.caller,
        status=answer.status,
        kind=effect.kind if effect else "",
        id=id_of(effect, call.parameters, _parsed(call, answer)) if effect else "",
        made=bool(effect and effect.makes),
        answered=answered,
    )


def _parsed(call: ApiCall, answer: _Answer) -> Any:
    """The response as parsed by botocore's clients; empty for an error."""
    from botocore.parsers import create_parser

    model = service_model(call.service)
    shape = model.operation_model(call.operation).output_shape
    if answer.status >= 400 or shape is None:
        return {}
    headers = {name.lower(): value for name, value in answer.headers}
    content = {"status_code": answer.status, "headers": headers, "body": answer.body}
    return create_parser(model.resolved_protocol).parse(content, shape)


def _json(start: StartResponse, status: int, content: Any) -> Iterable[bytes]:
    start(f"{status} -", [("Content-Type", "application/json")])
    return [json.dumps(content).encode()]

"""The simulated cloud in a thread of the test, with access to its faults and its ledger."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.cloud.server import SimulatedCloud

KEY, TOKEN = "test", "token"


class CloudInThread:
    """A cloud with an account, and calls that bypass ucp."""

    def __init__(self, cloud: SimulatedCloud, endpoint: str, ledger: Path) -> None:
        self.cloud = cloud
        self.account = AwsAccount(endpoint, KEY, "secret", "test")
        self._ledger, self._read = ledger, 0
        self._entries: list[CloudLedgerEntry] = []

    def call(self, service: str, operation: str, region: str = "eu-west-3", **asked: Any) -> Any:
        """Call the cloud's API directly, as a person in the console would."""
        return self.account.call(service, region, operation, **asked)

    def fail(self, *faults: CloudFault) -> None:
        """Replace all configured faults with these."""
        self.cloud._faults = faults

    def has_faults(self) -> bool:
        """Return whether some faults have not occurred yet."""
        return bool(self.cloud._faults)

    def entries(self, since: int = 0) -> list[CloudLedgerEntry]:
        return [each for each in self._all_entries() if each.number > since]

    @property
    def number(self) -> int:
        """Number of the last change."""
        return max((each.number for each in self._all_entries()), default=0)

    def _all_entries(self) -> list[CloudLedgerEntry]:
        """Reads new entries only, because a soak test asks after each of its steps."""
        if self._ledger.exists():
            with self._ledger.open("rb") as lines:
                lines.seek(self._read)
                for line in lines:
                    if line.endswith(b"\n"):
                        self._read += len(line)
                        self._entries.append(CloudLedgerEntry(**json.loads(line)))
        return self._entries

    def made(self, since: int = 0) -> Counter[str]:
        """Number of creations by kind."""
        return Counter(each.kind for each in self.entries(since) if each.made and each.succeeded)

    def left(self, since: int = 0) -> Counter[str]:
        """Number of creations minus deletions by kind, where it is positive."""
        count: Counter[str] = Counter()
        for (_, kind, _), number in remaining(self.entries(since)).items():
            count[kind] += number
        return count


@contextlib.contextmanager
def cloud_in_thread(folder: Path) -> Iterator[CloudInThread]:
    """Serve a cloud until the end of the block."""
    from moto.core.base_backend import BackendDict
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    folder.mkdir(exist_ok=True)
    # moto's state is the process's, and ids depend on the number of the call: what an earlier cloud
    # in this process was left with would have the ids of this one's resources.
    BackendDict.reset()
    cloud = SimulatedCloud(folder, KEY, TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = make_server(
            "127.0.0.1", port, cloud, threaded=True, request_handler=Quiet, fd=listener.fileno()
        )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield CloudInThread(cloud, f"http://127.0.0.1:{port}", folder / "ledger.jsonl")
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

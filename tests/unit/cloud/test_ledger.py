"""What the ledger counts as remaining, and files that a crash has truncated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from k8s_ucp.cloud.call import HttpRequest
from k8s_ucp.cloud.ledger import CloudLedger, CloudLedgerEntry, remaining
from k8s_ucp.cloud.recording import Recording


def entry(number: int, id: str, *, made: bool, status: int = 200) -> CloudLedgerEntry:
    operation = "CreateVpc" if made else "DeleteVpc"
    return CloudLedgerEntry(
        number, 1.0, "eu-west-1", "ec2", operation, "ucp", status, "vpc", id, made=made
    )


def test_only_resources_created_and_not_deleted_remain() -> None:
    entries = [
        entry(1, "vpc-1", made=True),
        entry(2, "vpc-2", made=True),
        entry(3, "vpc-1", made=False, status=503),
        entry(4, "vpc-2", made=False),
        entry(5, "vpc-3", made=True, status=400),
        CloudLedgerEntry(6, 1.0, "eu-west-1", "ec2", "CreateTags", "ucp", 200),
    ]

    assert remaining(entries) == {("eu-west-1", "vpc", "vpc-1"): 1}


def test_a_line_truncated_by_a_crash_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    ledger = CloudLedger(file)
    assert list(ledger.entries()) == []
    ledger.append(entry(1, "vpc-1", made=True))
    with file.open("a") as torn:
        torn.write('{"number":2,"ti')

    again = CloudLedger(file)
    assert [each.number for each in again.entries()] == [1]
    again.append(entry(2, "vpc-2", made=True))
    assert [each.number for each in again.entries()] == [1, 2]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_recorded_request_is_read_back_unchanged(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "recording.jsonl")
    headers = {"authorization": "a", "content-type": "b"}
    request = HttpRequest("PUT", "/a%2Fb", "x=1", headers, b"\x00\xff")

    recording.append(7, request)

    (found,) = recording.requests()
    assert (found.number, found.request) == (7, request)
    assert (tmp_path / "recording.jsonl").stat().st_mode & 0o777 == 0o600


SHORT = """
import pathlib, resource, sys
from k8s_ucp.cloud.json_lines import JsonLines
file = pathlib.Path(sys.argv[1])
lines = JsonLines(file)
lines.append({"number": 1})
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 5, hard))
try:
    lines.append({"number": 2})
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
lines.append({"number": 3})
print(*(each["number"] for each in lines.items()))
"""


def test_a_line_of_which_the_disk_takes_only_a_part_is_not_continued(tmp_path: Path) -> None:
    """Otherwise the cloud could not read its own file any more when it starts again."""
    run = subprocess.run(
        [sys.executable, "-c", SHORT, tmp_path / "lines"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == ["File too large", "1 3"]

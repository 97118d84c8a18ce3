"""A photograph of the board by a real browser, of a topology that was made up."""

from __future__ import annotations

import base64
import hashlib
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import k8s_ucp
from k8s_ucp.board.collector import Collector
from k8s_ucp.board.server import Board, BoardServer, listen
from k8s_ucp.board.snapshot import Snapshot
from tests.chromium import browser
from tests.integration.board.sources import WrittenSource, app_row, board_data, written_history

FILE = Path(__file__).parents[2] / "docs" / "pictures" / "board.png"
MOST_BYTES = 150 * 1024
SIZE = (1180, 640)
_ASSETS = Path(k8s_ucp.__file__).parent / "board" / "assets"
_MAGIC = b"\x89PNG\r\n\x1a\n"
_KEY = b"inputs\0"
HOUR = 3600


def inputs() -> str:
    """A hash over what the photograph depends on."""
    digest = hashlib.sha256()
    for path in (*sorted(_ASSETS.iterdir()), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def made_of() -> str:
    """The inputs that the committed photograph was made of."""
    for kind, content in _chunks(FILE.read_bytes()):
        if kind == b"tEXt" and content.startswith(_KEY):
            return content.removeprefix(_KEY).decode()
    return ""


def photograph() -> None:
    board = Board("shop", Collector(WrittenSource(_scene())), lambda: "<svg/>", written_history)
    server = BoardServer(board, listen())
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as page:
            page.size(*SIZE)
            page.theme("light")
            page.open(server.url)
            page.until("document.querySelectorAll('.cell').length >= 12")
            shot = page.call("Page.captureScreenshot", format="png")["data"]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    FILE.write_bytes(_with_text(base64.b64decode(shot), _KEY + inputs().encode()))


def _scene() -> Snapshot:
    now = time.time()

    def ago(hours: float) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - hours * HOUR))

    data = board_data(0, ("dev", "stage", "prod"))
    data["about"][""] |= {"topology": "shop", "write": True}
    tags = {
        "cart": ("2.4.1", "2.4.1", "2.4.0"),
        "catalog": ("1.12.0", "1.12.0", "1.12.0"),
        "checkout": ("3.1.0", "3.0.7", "3.0.7"),
        "search": ("0.9.3", "0.9.2", "0.9.2"),
        "web": ("5.20.0", "5.19.2", "5.19.2"),
    }
    for row, (app, versions) in enumerate(tags.items()):
        for column, (env, tag) in enumerate(zip(("dev", "stage", "prod"), versions, strict=True)):
            by, when = ("Ada", "Grace", "Linus")[(row + column) % 3], 2 + 7 * column + 3 * row
            cell = app_row(app, env, tag, since=ago(when))
            cell["changed"] |= {"by": by, "time": int(now - when * HOUR)}
            if column and versions[column - 1] != tag:
                newer = versions[column - 1]
                images = {"app": newer}
                before = data["apps"][f"{app}/{('dev', 'stage')[column - 1]}"]["changed"]
                env_before = ("dev", "stage")[column - 1]
                cell["newer"] = {
                    "env": env_before,
                    "tag": newer,
                    "images": images,
                    "changed": before,
                }
            data["apps"][f"{app}/{env}"] = cell
    data["apps"]["search/dev"] |= {
        "health": "Degraded",
        "why": "Deployment search: CrashLoopBackOff",
    }
    data["apps"]["checkout/dev"] |= {"sync": "OutOfSync", "health": "Progressing"}
    data["apps"]["web/stage"] |= {"held": ["5.20.0"]}
    return data


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert image.startswith(_MAGIC)
    at = len(_MAGIC)
    while at < len(image):
        length, kind = struct.unpack(">I4s", image[at : at + 8])
        yield kind, image[at + 8 : at + 8 + length]
        at += length + 12


def _with_text(image: bytes, text: bytes) -> bytes:
    """The image with a text beside it, which viewers don't show."""
    made = [_MAGIC]
    for kind, content in _chunks(image):
        for each, inside in ((kind, content), *([(b"tEXt", text)] if kind == b"IHDR" else [])):
            sum_of = zlib.crc32(each + inside)
            made += [struct.pack(">I4s", len(inside), each), inside, struct.pack(">I", sum_of)]
    return b"".join(made)

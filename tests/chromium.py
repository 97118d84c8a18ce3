"""A real browser: Debian's chromium, driven over its remote debugging protocol."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS = 60.0


def chromium() -> str:
    """Path of the program; root on Debian installs a missing one. Otherwise the test skips."""
    if found := _installed():
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("no chromium, and only root on Debian can install it: apt-get install chromium")
    with Path(tempfile.gettempdir(), "ucp-tests-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _installed():
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
            for command in (["apt-get", "update", "-qq"], install):
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    pytest.skip(f"chromium can't be installed here: {done.stderr[-300:]}")
    found = _installed()
    assert found
    return found


def _installed() -> str:
    return next((path for name in NAMES if (path := shutil.which(name))), "")


class Page:
    """One tab. Records every request that it sends and every message on its console."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self._last = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command of the protocol and return its result."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._last:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        what, told = message.get("method"), message.get("params", {})
        if what == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif what == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"] + " " + str(told["entry"].get("url", "")))

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and return its value; promises are awaited."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def until(self, script: str, *, seconds: float = 20.0) -> Any:
        """Wait until an expression is true; it is evaluated on each frame that the page draws."""
        limit = int(seconds * 1000)
        waiting = (
            "new Promise((done) => { const end = performance.now() + " + str(limit) + ";"
            " const look = () => { let value; try { value = (" + script + ") } catch { value = 0 }"
            " if (value || performance.now() > end) done(value); else setTimeout(look, 20) };"
            " look() })"
        )
        deadline = time.monotonic() + seconds
        while True:
            try:
                value = self.run(waiting)
            except AssertionError:
                # The page was navigating to another address at that moment.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
                continue
            assert value, f"not so within {seconds} s: {script}"
            return value

    def press(self, key: str, code: int = 0, text: str = "", *, modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                text=text,
                modifiers=modifiers,
            )

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def theme(self, name: str) -> None:
        """Emulate the color scheme: light or dark."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start a browser with an empty profile in that folder and yield its only tab."""
    quiet = ("--disable-background-networking", "--disable-component-update", "--no-first-run")
    words = [
        chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        *quiet, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    log = (folder.parent / f"{folder.name}.log").open("wb")
    process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        page = Page(_tab(folder / "DevToolsActivePort", process))
        try:
            yield page
        finally:
            page.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _tab(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "chromium ended"
        with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
            port = int(port_file.read_text().split()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as found:
                tabs = json.load(found)
            return str(
                next(each["webSocketDebuggerUrl"] for each in tabs if each["type"] == "page")
            )
        time.sleep(0.05)
    raise AssertionError("chromium does not answer")

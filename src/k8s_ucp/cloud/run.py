"""Runs the simulated cloud: `python -m k8s_ucp.cloud.run --folder FOLDER --port PORT`.

It listens once the recorded requests are replayed, so every response includes their results.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from pathlib import Path

from k8s_ucp.cloud.keys import read_keys
from k8s_ucp.cloud.server import LOG, SimulatedCloud, server_on, warm_up
from k8s_ucp.errors import UcpError
from k8s_ucp.locks import locked_now
from k8s_ucp.loopback import ADDRESS


def run(folder: Path, port: int) -> None:
    """Serve until the process ends. Raises UcpError."""
    keys = read_keys(folder)
    with locked_now(folder / "lock") as alone:
        if not alone:
            raise UcpError(f"another process runs the simulated cloud in {folder}")
        cloud = SimulatedCloud(folder, keys.access_key, keys.token, _restart)
        try:
            listener = socket.create_server((ADDRESS, port))
        except OSError as error:
            raise UcpError(f"failed to listen on {ADDRESS}:{port}: {error.strerror}") from error
        with listener:
            LOG.info("listening on %s:%d", ADDRESS, port)
            threading.Thread(target=warm_up, daemon=True).start()
            server_on(listener, cloud).serve_forever()


def _restart() -> None:
    """Restart after the response is sent; the process keeps its PID."""
    threading.Timer(0.2, os.execv, (sys.executable, sys.orig_argv)).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the cloud's state")
    parser.add_argument("--port", type=int, required=True, help="port on the loopback")
    options = parser.parse_args()
    logging.basicConfig(
        stream=sys.stdout, level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    LOG.setLevel(logging.INFO)
    # It would log every read, with URLs that may contain confidential data.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        run(options.folder, options.port)
    except UcpError as error:
        sys.exit(f"ucp: {error}")


if __name__ == "__main__":
    main()

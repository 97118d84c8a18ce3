"""`make pictures ARGS="NAME..."`: create the named pictures, or all of them.

board needs chromium. recording starts a real topology, so it needs the engines.
"""

from __future__ import annotations

import sys

from tests import package_graph
from tests.pictures import board, flow, recording, session


def draw_packages() -> None:
    package_graph.PAGE.write_text(
        package_graph.page(package_graph.PAGE.read_text("utf-8")), "utf-8"
    )


# The recording comes first, because the session is drawn from it.
MAKERS = {
    "packages": draw_packages,
    "flow": lambda: flow.FILE.write_text(flow.picture(), "utf-8"),
    "recording": recording.record,
    "session": lambda: session.FILE.write_text(
        session.picture(session.RECORDING.read_text("utf-8")), "utf-8"
    ),
    "board": board.photograph,
}

if __name__ == "__main__":
    names = sys.argv[1:] or list(MAKERS)
    if unknown := [each for each in names if each not in MAKERS]:
        sys.exit(f"no picture is called {', '.join(unknown)}; there are {', '.join(MAKERS)}")
    for name in names:
        MAKERS[name]()
        print(name)

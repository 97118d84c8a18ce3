"""100 apps in four environments on the board, in a real browser: first paint, update of one app."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.chromium import Page, browser
from tests.evidence import table, write
from tests.integration.board.sources import ENVIRONMENTS, WrittenSource, board_data, make_server
from tests.serving import serving

APPS, GOAL = 100, 1.0
_SEEN = """window.seen = new Promise((done) => {
  const look = () => {
    if (document.querySelector('[data-key="app-050/prod"]').innerText.includes("7.7.7"))
      requestAnimationFrame(() => done(Date.now()));
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
}), 1"""


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/board.md."""
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="ucp-bench-", ignore_cleanup_errors=True) as folder,
        browser(Path(folder) / "profile") as page,
    ):
        for number in range(rounds):
            rows.append((number + 1, *(f"{each:.2f}" for each in _round(page))))
            print(rows[-1], flush=True)
    columns = ["round", "first paint s", "all apps drawn s", "update of one app s"]
    updates = statistics.median(float(row[3]) for row in rows)
    write(
        "board",
        "The board with many apps",
        {
            f"{APPS} apps in {len(ENVIRONMENTS)} environments (goal: first paint and update at "
            f"most {GOAL:g} s each)": table(columns, rows)
            + f"\n\nMedian update {updates:.2f} s, from the moment the collector is told of the "
            "change to the next frame of the browser. The data are written by the bench, no "
            "cluster is asked; the browser runs headless on the same machine.",
        },
        command="make bench ARGS=board",
    )


def _round(page: Page) -> tuple[float, float, float]:
    source = WrittenSource(board_data(APPS, ENVIRONMENTS))
    with serving(make_server(source)) as server:
        page.open(server.url)
        count = APPS * len(ENVIRONMENTS)
        drawn = page.until(
            f"document.querySelectorAll('.cell').length === {count} && performance.now()"
        )
        paint = page.until("performance.getEntriesByType('paint')[0]?.startTime")
        page.run(_SEEN)
        began = time.time()
        source.change("apps", "app-050/prod", tag="7.7.7")
        update = page.run("window.seen") / 1000 - began
    return paint / 1000, drawn / 1000, update

"""The board in a real browser: display, keyboard and mouse, on screens of every width."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from k8s_ucp.board.actions import Action, Outcome
from k8s_ucp.board.server import BoardServer
from tests.chromium import Page, browser
from tests.integration.board.conftest import Serve
from tests.integration.board.sources import ENVIRONMENTS, Actor, WrittenSource, board_data

AXE = files("axe_core_python") / "axe.min.js"
NEWER = {
    "env": "stage",
    "tag": "1.0.1",
    "images": {"app": "1.0.1"},
    "changed": {
        "by": "Grace",
        "time": 1_760_000_000,
        "kind": "promote",
        "commit": "1",
        "from": "",
        "to": "1.0.1",
    },
}
SHIFT = 8
CELL = "document.querySelector('[data-key=\"{}\"]')"


LAYOUT = Path(__file__).with_name("layout.json")
"""Layout of the page at each width, the same in both themes: {width: {part: [x, y, w, h]}}.

Delete the file to have it written anew.
"""
PARTS = (
    "header", "nav", "#filter", "#grid", "[data-key='app-001/prod']", "#apps", "#findings",
    "#environments", "#platform", "#mirrors", "#resources", "#events", "#map",
)  # fmt: skip
BOXES = f"""Object.fromEntries({json.dumps(PARTS)}.map((part) => {{
  const box = document.querySelector(part).getBoundingClientRect();
  return [part, [box.x, box.y + scrollY, box.width, box.height].map(Math.round)];
}}))"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
OVERLAPS = """[
  "body > header, body > nav, main > section", ".cell", "#filter > *",
].flatMap((group) => {
  const boxes = [...document.querySelectorAll(group)].map((each) => each.getBoundingClientRect());
  return boxes.flatMap((a, place) => boxes.slice(place + 1)
    .filter((b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
    .map((b) => [group, a.x, a.y, b.x, b.y]));
})"""


def strayed(golden: dict[str, list[int]], found: dict[str, list[int]]) -> dict[str, Any]:
    """Parts that moved. Tolerances differ, since fonts change heights more than widths."""
    return {
        part: (golden[part], box)
        for part, box in found.items()
        if part not in golden
        or any(abs(golden[part][each] - box[each]) > 4 for each in (0, 2))
        or any(abs(golden[part][each] - box[each]) > 12 + 0.15 * box[each] for each in (1, 3))
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as found:
        yield found


def show(page: Page, server: BoardServer) -> None:
    page.requests.clear()
    page.complaints.clear()
    page.size(1280, 900)
    page.theme("light")
    page.open(server.url)
    page.until("location.search === '' && document.querySelector('.cell') !== null")


def well(page: Page, server: BoardServer) -> None:
    """Check that the page logged no error and sent requests to loopback only."""
    assert page.complaints == []
    web = [urlsplit(each) for each in page.requests if each.startswith(("http", "ws"))]
    assert web
    assert {each.netloc for each in web} == {f"127.0.0.1:{server.port}"}


def violations(page: Page) -> list[Any]:
    """Findings of axe, by rule and element."""
    page.run(AXE.read_text("utf-8"))
    found = page.run("axe.run().then((result) => result.violations)")
    return [(each["id"], [node["target"] for node in each["nodes"]][:5]) for each in found]


def test_page_shows_changes_and_reports_a_lost_core_and_a_lost_server(
    page: Page, serve: Serve
) -> None:
    source = WrittenSource()
    source.change("apps", "app-001/prod", newer=NEWER, held=["0.9.9"])
    server = serve(source)
    show(page, server)
    assert page.run("document.querySelectorAll('.cell').length") == 4
    text = page.run("document.body.innerText")
    words = (
        "demo", "app-000", "stage", "prod", "argocd", "mirror ca: 1 copy pending", "cloud",
        "sync failed", "1.0.1 in stage", "held: 0.9.9", "1 can be promoted",
    )  # fmt: skip
    assert [each for each in words if each not in text] == []
    source.change("apps", "app-001/stage", tag="2.0.0", health="Progressing")
    page.until(CELL.format("app-001/stage") + ".innerText.includes('2.0.0')")
    page.until("document.getElementById('announcement').textContent.includes('2.0.0')")
    source.change("about", "", lost=True, lostSince=1_760_000_000)
    alert = "document.getElementById('alert').innerText"
    page.until(f"{alert}.includes('does not respond since')")
    since = page.run("new Date(1760000000000).toLocaleString()")
    assert f"since {since}; the page shows its last known state" in page.run(alert)
    assert page.run("document.body.className") == "stale"
    assert page.run("document.querySelectorAll('.cell').length") == 4
    source.change("about", "", lost=False, lostSince=None)
    page.until("document.getElementById('alert').hidden")
    assert (
        page.run("document.body.className + document.getElementById('connection').textContent")
        == "live"
    )
    well(page, server)
    server.shutdown()
    server.server_close()
    page.until("/lost at .*, reconnecting/.test(document.getElementById('connection').textContent)")


def test_promotion_is_confirmed_and_its_result_is_shown(page: Page, serve: Serve) -> None:
    actor = Actor()
    source = WrittenSource()
    source.change("apps", "app-001/prod", newer=NEWER, held=["0.9.9"])
    server = serve(source, actor)
    show(page, server)
    page.run(CELL.format("app-001/prod") + ".click()")
    assert "by Grace" in page.run("document.getElementById('facts').innerText")
    page.until("document.getElementById('history').innerText.includes('Ada')")
    button = "document.querySelector('#actions [data-kind={}]')"
    page.run(button.format("promote") + ".click()")
    assert actor.asked == []
    page.run(button.format("promote") + ".click()")
    outcome = "document.getElementById('outcome').textContent"
    page.until(f"{outcome}.startsWith('promoted:')")
    seen = {"app-001": "1.0.0"}
    assert actor.asked == [Action("promote", "app-001", "prod", {"app": "1.0.1"}, seen)]
    actor.answer = Outcome(False, "held: app-001 in prod was rolled back\n  next: ucp rollback")
    for kind in ("rollback", "hold", "release-hold"):
        page.run(
            f"document.getElementById('outcome').textContent = '', {button.format(kind)}.click()"
        )
        page.run(button.format(kind) + ".click()")
        page.until(f"{outcome}.startsWith('held:')")
        assert actor.asked[-1] == Action(kind, "app-001", "prod", seen=seen)
    assert violations(page) == []
    well(page, server)


def test_read_only_board_shows_commands_instead_of_buttons(page: Page, serve: Serve) -> None:
    source = WrittenSource()
    source.change("apps", "app-001/prod", newer=NEWER)
    server = serve(source)
    show(page, server)
    page.run(CELL.format("app-001/prod") + ".click()")
    assert page.run("document.querySelectorAll('#actions button').length") == 0
    commands = page.run("document.getElementById('commands').textContent")
    assert "ucp promote app-001 --env prod --from stage" in commands


def test_keyboard_reaches_every_function(page: Page, serve: Serve) -> None:
    show(page, serve(WrittenSource()))
    focused = "document.activeElement.dataset.key || document.activeElement.id"
    page.run("document.getElementById('promotable').focus()")
    page.press("Tab", 9)
    assert page.run(focused) == "app-000/stage"
    page.press("ArrowRight", 39)
    page.press("ArrowDown", 40)
    assert page.run(focused) == "app-001/prod"
    page.press("Enter", 13, "\r")
    page.until("document.getElementById('details').open")
    page.press("Escape", 27)
    page.until("!document.getElementById('details').open")
    assert page.run(focused) == "app-001/prod"
    page.press("/", 191, "/")
    assert page.run(focused) == "words"
    page.press("1", 49, "1")
    page.until("[...document.querySelectorAll('#grid-body tr')].length === 2")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_layout_fits_every_width_in_both_themes(page: Page, serve: Serve, theme: str) -> None:
    source = WrittenSource(board_data(3, ENVIRONMENTS))
    source.change("apps", "app-001/prod", newer=NEWER, held=["0.9.9"], health="Degraded")
    source.change("apps", "app-002/prod", sync="OutOfSync")
    server = serve(source)
    show(page, server)
    page.theme(theme)
    layouts: dict[str, dict[str, list[int]]] = {}
    for width, height in ((360, 740), (820, 1180), (1440, 900)):
        page.size(width, height, phone=width < 500)
        wide = page.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels at {width}"
        assert violations(page) == [], (theme, width)
        # Rows outside of the screen have not been laid out yet.
        page.size(width, 4000, phone=width < 500)
        page.run(DRAWN)
        assert page.run(OVERLAPS) == []
        boxes = page.run(BOXES)
        assert min(boxes["[data-key='app-001/prod']"][2:]) >= 24
        layouts[str(width)] = boxes
    if not LAYOUT.exists():
        LAYOUT.write_text(re.sub(r"(?<=[\[\d,])\s+(?=[-\d\]])", " ", json.dumps(layouts, indent=1)))
    golden = json.loads(LAYOUT.read_text())
    assert {each: strayed(golden[each], layouts[each]) for each in golden} == {
        each: {} for each in layouts
    }
    back = page.run("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") is (theme == "light")
    well(page, server)


def test_long_list_is_expanded_by_keyboard_and_stays_expanded(page: Page, serve: Serve) -> None:
    source = WrittenSource()
    event = source.data["events"]["1"]
    source.data["events"] = {str(number): {**event, "about": f"n{number}"} for number in range(40)}
    server = serve(source)
    show(page, server)
    rows = "document.querySelectorAll('#events tbody tr').length"
    button = "document.querySelector('#events .more-rows')"
    assert page.run(rows) == 10
    assert page.run(f"{button}.textContent") == "Show 30 more"
    page.run("document.querySelector('#map-details summary').focus()")
    page.press("Tab", 9, modifiers=SHIFT)
    page.press("Enter", 13, "\r")
    page.until(f"{rows} === 40 && document.activeElement === {button}")
    source.change("events", "40", **event)
    page.until(f"{rows} === 41 && document.activeElement === {button}")
    assert page.run(f"{button}.getAttribute('aria-expanded')") == "true"
    page.press("Enter", 13, "\r")
    page.until(f"{rows} === 10")
    well(page, server)


def test_map_is_fetched_only_when_it_is_opened(page: Page, serve: Serve) -> None:
    server = serve(WrittenSource())
    show(page, server)
    assert not [each for each in page.requests if "map.svg" in each]
    page.run("document.querySelector('#map-details summary').click()")
    page.until("document.querySelector('#map-frame img').naturalWidth === 9")
    well(page, server)


def test_page_of_a_hundred_apps_updates_only_what_changed(
    page: Page, serve: Serve, tmp_path: Path
) -> None:
    source = WrittenSource(board_data(100, ENVIRONMENTS))
    server = serve(source)
    show(page, server)
    assert page.run("document.querySelectorAll('.cell').length") == 400
    page.run("window.before = [...document.querySelectorAll('.cell')]")
    source.change("apps", "app-050/prod", tag="7.7.7")
    page.until(CELL.format("app-050/prod") + ".innerText.includes('7.7.7')")
    kept = "window.before.filter((each) => each.isConnected).length"
    assert page.run(kept) == 399
    page.run("(() => { const w = document.getElementById('words'); w.value = 'app-05';"
             " w.dispatchEvent(new Event('input')) })()")  # fmt: skip
    shown = "[...document.querySelectorAll('#grid-body tr')].filter((each) => !each.hidden).length"
    assert page.run(shown) == 10
    well(page, server)

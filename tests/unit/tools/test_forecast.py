"""Remaining time of builds, estimated from the source to compile and the speed of the machine."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from k8s_ucp.tools.catalogue import CATALOGUE, EMBEDDED
from k8s_ucp.tools.forecast import LATER, LINKING, SHORT, SOON, Forecast, about
from k8s_ucp.tools.recipe import Phase, TimeLeft, ToolProgress
from tests.unit.tools.estimates import is_right

SET = {name: CATALOGUE[name].kilobytes for name in EMBEDDED if name != "redis"}
ETCD = {"etcd": (100, 50)}
HALF = 0.5**LATER
"""Fraction of the compile time after which half of the source has been started."""


def compiling(tool: str, kilobytes: int) -> ToolProgress:
    return ToolProgress(tool, "1", Phase.COMPILING, 0.0, kilobytes=kilobytes)


def installed(tool: str) -> ToolProgress:
    return ToolProgress(tool, "1", Phase.INSTALLED, 0.0)


def played(pace: float) -> tuple[list[tuple[float, float]], float]:
    """([(time, estimated seconds left)] for every second, end time) of a simulated install.

    Two concurrent builds share a machine that compiles `pace` kilobytes a second, slower towards
    the end; the last packages and linking take as long as a seventh of a tool's source.
    """
    forecast, now = Forecast(SET), 0.0
    first = next(iter(SET))
    really = {name: (alone if name == first else after) for name, (alone, after) in SET.items()}
    begun, said = dict.fromkeys(SET, 0.0), []
    open_ones = list(SET)
    while open_ones:
        running = open_ones[:2]
        for name in running:
            share = min(begun[name] / really[name], 1)
            forecast.note(compiling(name, int(really[name] * share**0.9)), now)
        now += 1
        for name in running:
            begun[name] += pace / len(running)
            if begun[name] >= 8 / 7 * really[name]:
                open_ones.remove(name)
                forecast.note(installed(name), now)
        if (left := forecast.left(now)) is not None:
            said.append((now, left.overall))
    return said, now


@pytest.mark.parametrize("pace", [50.0, 400.0, 800.0, 3000.0])
def test_the_estimate_is_early_and_within_a_third_on_machines_of_any_speed(pace: float) -> None:
    said, end = played(pace)
    assert said[0][0] <= SOON + 1
    # Near the end only linking is left; less than three minutes are not estimated exactly.
    told = [(now, left) for now, left in said if end - now > max(SHORT, end / 3)]
    assert [(now, left) for now, left in told if abs(left - (end - now)) > (end - now) / 3] == []


DONE = -1
"""Instead of a number of kilobytes: the tool is installed."""
BUSY = (
    (56, 3966, 0),
    (155, 11326, 5507),
    (255, 18396, 15924),
    (356, 27290, 21858),
    (456, 35505, 29254),
    (756, 49027, 51404),
    (1055, 63715, 64576),
    (1356, 70221, 83555),
    (1655, 78161, 88939),
    (1958, 88056, 103410),
    (2256, 97621, 126632),
    (2562, 104687, 130254),
)
"""(seconds, kilobytes of kubernetes, of argocd) of a real, concurrent build of both, with an empty
cache on two cores shared with twenty other programs. Compiling began after 39 s."""
BUSY_END = 3007
"""End of the build of kubernetes, which was the last."""


CHANGING = (
    (60, 17413, 7886),
    (140, 46610, 38835),
    (220, 63097, 64317),
    (300, 76549, 85685),
    (380, 87568, 102233),
    (460, 96910, 125421),
    (540, 103560, 129175),
    (620, 106833, DONE),
    (700, 109241, DONE, 8259),
    (780, 113834, DONE, 16943),
    (845, DONE, DONE, 27237),
    (900, DONE, DONE, 37027, DONE),
    (960, DONE, DONE, 44858, DONE, 11766),
    (1010, DONE, DONE, 54485, DONE, 22975),
)
"""The same for the whole set, on a machine that was idle for five minutes, then ran ten other
programs, and fewer again after 840 s. Compiling began after 15 s."""
CHANGING_END = 1094


FREE = (
    (64, 26326, 14531),
    (96, 36532, 26173),
    (127, 46307, 39630),
    (158, 49483, 51299),
    (188, 60873, 58970),
    (219, 68211, 70987),
    (251, 70318, 81559),
    (283, 75410, 85511),
    (314, 80941, 90194),
    (345, 86863, 101505),
    (376, 90166, 114507),
    (407, 97900, 125546),
    (438, 101883, 128750),
    (469, 105697, 129549),
    (500, 109411, DONE),
    (531, 114836, DONE, 7770),
    (567, DONE, DONE, 23162),
    (597, DONE, DONE, 32486, 6857),
    (629, DONE, DONE, 37190, DONE, 4369),
    (662, DONE, DONE, 44218, DONE, 17428),
    (693, DONE, DONE, 53772, DONE, 26939),
    (734, DONE, DONE, 57420, DONE, DONE),
)
"""The whole set on two otherwise idle cores. Compiling began after 11 s."""
FREE_END = 765


ROLLOUTS = (
    (38, 14484),
    (59, 27342),
    (80, 40892),
    (100, 52333),
    (121, 66009),
    (142, 79120),
    (162, 88468),
    (182, 90411),
    (202, 101561),
)
"""The same for argo-rollouts alone, afterwards."""
ROLLOUTS_BEGAN, ROLLOUTS_END = 18, 212


def misses(
    tools: tuple[str, ...], rows: Iterable[tuple[int, ...]], began: float, end: float
) -> list[int]:
    """Times at which the estimate was off by more than a third."""
    forecast, wrong = Forecast({name: CATALOGUE[name].kilobytes for name in tools}), []
    forecast.note(compiling(tools[0], 0), began)
    for now, *counts in rows:
        for name, packages in zip(tools, counts, strict=False):
            forecast.note(installed(name) if packages == DONE else compiling(name, packages), now)
        if (left := forecast.left(now)) is None:
            continue
        if not is_right(about(left), end - now):
            wrong.append(now)
    return wrong


def test_estimates_of_a_real_build_on_an_idle_machine_are_within_a_third() -> None:
    assert misses(tuple(SET), FREE, 11.0, FREE_END) == []
    assert misses(("argo-rollouts",), ROLLOUTS, ROLLOUTS_BEGAN, ROLLOUTS_END) == []


def test_estimates_of_a_real_build_on_a_busy_machine_are_within_a_third() -> None:
    assert misses(("kubernetes", "argocd"), BUSY, 39.0, BUSY_END) == []


def test_estimates_are_too_low_before_other_programs_slow_the_machine_down() -> None:
    """Only the speed so far is known: the estimate is too low before the other programs start,
    and a range after they have started or ended."""
    assert misses(tuple(SET), CHANGING, 15.0, CHANGING_END) == [140, 220, 300]


def test_an_estimate_grows_when_the_machine_slows_down() -> None:
    forecast = Forecast(ETCD)
    forecast.note(compiling("etcd", 0), 0.0)
    forecast.note(compiling("etcd", 50), 40.0)
    assert overall(forecast, 40.0) == pytest.approx(40 * (1 + LINKING - HALF) / HALF)
    forecast.note(compiling("etcd", 50), 80.0)
    assert overall(forecast, 80.0) == pytest.approx(80 * (1 + LINKING - HALF) / HALF)


def test_there_is_no_estimate_before_enough_is_known() -> None:
    forecast = Forecast(ETCD)
    assert forecast.left(100.0) is None
    forecast.note(compiling("etcd", 0), 100.0)
    forecast.note(compiling("etcd", 50), 101.0)
    assert forecast.left(101.0) is None
    assert forecast.left(100.0 + SOON) is not None


def test_a_build_that_links_still_has_time_left() -> None:
    forecast = Forecast(ETCD)
    forecast.note(compiling("etcd", 0), 0.0)
    forecast.note(compiling("etcd", 100), 95.0)
    assert overall(forecast, 95.0) == pytest.approx(95 * LINKING)


def test_downloaded_tools_do_not_count() -> None:
    forecast = Forecast(ETCD)
    forecast.note(compiling("etcd", 50), 0.0)
    forecast.note(installed("helm"), 50.0)
    assert overall(forecast, 50.0) == pytest.approx(50 * (1 + LINKING - HALF) / HALF)


def test_later_builds_count_less_because_packages_are_already_compiled() -> None:
    forecast = Forecast({"kwok": (100, 30), "etcd": (100, 50)})
    forecast.note(compiling("kwok", 0), 0.0)
    forecast.note(installed("kwok"), 100.0)
    assert overall(forecast, 100.0) == pytest.approx(50.0)


def overall(forecast: Forecast, now: float) -> float:
    left = forecast.left(now)
    assert left
    return left.overall


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((400, 410), "about 7 min left"),
        ((160, 160), "about 3 min left"),
        ((30, 30), "less than 3 min left"),
        ((30, 100), "less than 3 min left"),
        ((480, 900), "8 to 15 min left"),
        ((900, 480), "8 to 15 min left"),
        ((20, 160), "1 to 3 min left"),
    ],
)
def test_estimates_are_rounded_to_minutes(left: tuple[float, float], said: str) -> None:
    assert about(TimeLeft(*left)) == said

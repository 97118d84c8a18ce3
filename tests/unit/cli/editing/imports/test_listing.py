"""Rows of apps that can't be added, and notes."""

from __future__ import annotations

from k8s_ucp.cli.editing.imports.listing import note_lines, refusal_rows
from k8s_ucp.cli.editing.imports.selection import by_advice
from k8s_ucp.gitops.imports.findings import RefusedApp


def test_many_with_the_same_reason_are_one_row() -> None:
    same = [
        RefusedApp(f"app-{each}", f"{each}.yaml:1", "a template", "fill it") for each in "abcde"
    ]
    other = RefusedApp("web", "web.yaml:1", "a plugin renders it", "commit what it renders")
    assert refusal_rows([*same[:2], other, *same[2:]]) == [
        ["app-a, app-b, app-c and 2 more", "a.yaml:1 and 4 more", "a template", "fill it"],
        ["web", "web.yaml:1", "a plugin renders it", "commit what it renders"],
    ]
    assert len(refusal_rows(same[:3])) == 3


def test_many_refusals_with_advice_of_their_own_are_one_row_with_the_common_advice() -> None:
    refused = [
        RefusedApp(name, f"{name}.yaml", "old", f"see {name}", for_many="see all")
        for name in "abcd"
    ]
    assert refusal_rows(refused) == [["a, b, c and 1 more", "a.yaml and 3 more", "old", "see all"]]
    assert [each[3] for each in refusal_rows(refused[:3])] == ["see a", "see b", "see c"]


def test_many_apps_with_the_same_note_are_one_line() -> None:
    notes = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")]
    assert note_lines(notes) == ["note: a: x", "note: c: x", "note: d: x", "note: b: y"]
    assert note_lines([*notes, ("e", "x")]) == ["note: a, c, d and 1 more: x", "note: b: y"]


def test_what_to_do_about_several_apps_is_said_once() -> None:
    network, proxy = "check the network", "set a proxy"
    reasons = {"a is not added: x": network, "b is not added: y": proxy, "c is not added": network}
    assert by_advice(reasons) == [
        "a is not added: x\n  c is not added\n  next: check the network",
        "b is not added: y\n  next: set a proxy",
    ]

"""What the flags and answers of `ucp app import` choose: apps, their names, environments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING

from k8s_ucp.cli.editing.adding.items import parsed_item
from k8s_ucp.cli.editing.imports.selection import NAMED, refused
from k8s_ucp.errors import UsageError, some_of, unknown_name
from k8s_ucp.gitops.imports.environment_mapping import unmapped
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, NotImportable, free_name
from k8s_ucp.topology.problems import some
from k8s_ucp.topology.rules.names import taken_namespace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

OTHERS = "*"
"""Value of --skip-env for all environments that are not mapped."""
_LEFT_OUT = ""
"""Answer for an environment that is left out."""


def given_names(found: Discovery, words: Sequence[str]) -> dict[str, str]:
    """{name of an app that was found: its new name}. Raises UsageError."""
    names: dict[str, str] = {}
    known = [each.name for each in found.findings]
    for word in words:
        theirs, equals, name = word.partition("=")
        if not equals or theirs not in known:
            raise UsageError(
                f"--rename {word} is not valid; use THEIRS=APP with an app of the repository: "
                f"{some(known)}"
            )
        if name in known or name in names.values():
            raise UsageError(f"--rename {word}: another app is called {name}")
        names[theirs] = parsed_item({"name": name, "image": "any"}).name
    return names


def renamed(found: Discovery, names: Mapping[str, str]) -> Discovery:
    """The discovery with apps under new names, sorted by these."""
    findings = (
        replace(each, name=names[each.name]) if each.name in names else each
        for each in found.findings
    )
    return replace(found, findings=tuple(sorted(findings, key=lambda each: each.name)))


def without_taken(found: Discovery, topology: Topology) -> Discovery:
    """Refuse apps whose names are already in use."""
    existing = {each.name for each in topology.spec.apps}
    used = existing | {each.name for each in found.findings}
    for each in found.findings:
        reason = taken_namespace(each.name)
        if each.name in existing:
            reason = "ucp.yaml has an app of this name"
        if reason:
            free = free_name(each.name, used)
            used.add(free)
            advice = f"run the command again with --rename {each.name}={free}"
            found = refused(found, each, NotImportable(reason, advice))
    return found


def given_mapping(
    maps: Sequence[str], skipped: Sequence[str], ours: Sequence[str]
) -> dict[str, str | None]:
    """{environment of the repository: ours, or None to leave it out}. Raises UsageError."""
    found: dict[str, str | None] = dict.fromkeys(each for each in skipped if each != OTHERS)
    for word in maps:
        environment, equals, name = word.partition("=")
        if not equals or not environment or name not in ours:
            raise UsageError(
                f"--map {word} is not valid; use THEIRS=ENV with an environment of ucp.yaml: "
                f"{', '.join(ours)}"
            )
        found[environment] = name
    return found


def noting_unknown(found: Discovery, mapping: Mapping[str, str | None]) -> Discovery:
    """The discovery with a note for each mapped environment that no app has, such as a typo."""
    known = sorted({name for each in found.findings for name in each.environments})
    have = f"they have {some_of(known, NAMED)}" if known else "they have no environments"
    notes = (
        f"--map {name}={here} changes nothing: no app has an environment {name}; {have}"
        for name, here in mapping.items()
        if here and name not in known
    )
    return replace(found, notes=(*found.notes, *notes))


def by_app(words: Sequence[str], flag: str) -> dict[str, list[str]]:
    """{app: values} of a flag that is given as APP=VALUE. Raises UsageError."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{flag} {word} is not valid", next=f"{flag} APP={word}")
        found.setdefault(name, []).append(value)
    return found


def refuse_unknown(found: Discovery, keys: Mapping[str, Mapping[str, list[str]]]) -> None:
    """Refuse flags for apps that were not found. keys: {key: {app: values}}. Raises UsageError."""
    names = [each.name for each in found.findings]
    known = {*names, *(each.name for each in found.refusals)}
    for name in (each for values in keys.values() for each in values):
        if name not in known:
            raise unknown_name("app", name, names)


def pick_apps(
    found: Discovery,
    names: tuple[str, ...],
    left_out: Sequence[str],
    *,
    every: bool,
    dry_run: bool,
) -> list[DiscoveredApp]:
    """The selected apps. Raises UsageError."""
    from k8s_ucp.cli.questions import can_ask, choose_many

    by_name = {each.name: each for each in found.findings}
    for name in names:
        if name not in by_name:
            why = next((each for each in found.refusals if each.name == name), None)
            if why:
                raise UsageError(f"{name} can't be added: {why.reason}", next=why.advice)
            raise unknown_name("app", name, [*by_name])
    if not by_name:
        advice = (each.advice for each in found.refusals if "ucp app add" in each.advice)
        raise UsageError(
            "no app was found that can be added",
            next=next(
                advice, "ucp app add NAME IMAGE:TAG for each image, or ucp app add NAME FOLDER"
            ),
        )
    for name in dict.fromkeys(left_out):
        if not by_name.pop(name, None) and name not in {each.name for each in found.refusals}:
            raise unknown_name("app", name, [*by_name])
    if not by_name:
        raise UsageError("--skip-app leaves out all apps that were found; nothing was changed")
    if names:
        return [by_name[name] for name in dict.fromkeys(names) if name in by_name]
    if every or dry_run:
        return list(by_name.values())
    if not can_ask():
        raise UsageError(
            "no app is selected", next="run the command again with --all or --app NAME"
        )
    chosen = choose_many(
        "Apps to add:",
        {name: f"{name}: {each.form}, {each.where}" for name, each in by_name.items()},
    )
    if not chosen:
        raise UsageError("no app is selected; nothing was changed")
    return [by_name[name] for name in chosen]


def complete_mapping(
    picked: Sequence[DiscoveredApp],
    ours: Sequence[str],
    mapping: dict[str, str | None],
    *,
    skip_others: bool,
) -> dict[str, str | None]:
    """The mapping, completed by answers. Raises UsageError if a question is impossible."""
    from k8s_ucp.cli.questions import can_ask, choose_one

    missing = unmapped(picked, ours, mapping)
    if skip_others:
        return {**mapping, **dict.fromkeys(missing)}
    beside = {
        name: {one for each in picked if name in each.environments for one in each.environments}
        for name in missing
    }
    if missing and not can_ask():
        flags = proposed_flags(missing, ours, mapping, beside)
        more = " (or --skip-env NAME)"
        if any(each.startswith("--skip-env ") for each in flags):
            more = "; to keep one that is left out: --map NAME=ENV, or first `ucp env add NAME`"
        advice = f"map them: {' '.join(flags)}{more}"
        raise UsageError(
            f"ucp.yaml has no environment {some_of(missing, NAMED)}; it has {', '.join(ours)}",
            next=advice if len(flags) <= NAMED else _of_many(flags),
        )
    found = dict(mapping)
    for each in missing:
        taken = {found.get(name) for name in beside[each]}
        free = [name for name in ours if name not in taken]
        answer = choose_one(
            f"Environment of ucp.yaml for '{each}':",
            {**{name: name for name in free}, _LEFT_OUT: "none: leave it out"},
        )
        found[each] = answer or None
    return found


def _of_many(flags: Sequence[str]) -> str:
    """The advice for so many environments that hardly anybody maps all of them.

    flags: those of `proposed_flags`, of which only some have an environment of ours.
    """
    known = [each for each in flags if each.startswith("--map ")]
    named = " ".join(known[:NAMED] or flags[:1])
    return (
        f"map those that you want, and leave out all others: {named} --skip-env '*'; or import "
        "single apps with --app NAME"
    )


def proposed_flags(
    missing: Sequence[str],
    ours: Sequence[str],
    mapping: Mapping[str, str | None],
    beside: Mapping[str, Collection[str]],
) -> list[str]:
    """Flags that map environments with similar names, each of ours once, and leave out others.

    beside: environments of the apps that have one, by its name; ours among these are not used for
    it.
    """
    free = [each for each in ours if each not in mapping.values()]
    alike: dict[str, str] = {}
    for name in missing:
        open_ = [each for each in free if each not in beside.get(name, ())]
        same = (each for each in open_ if each.startswith(name[:4]) or name.startswith(each))
        if here := next(same, None):
            free.remove(here)
            alike[name] = here
    if not alike:
        # Something must be imported: the first that may be is proposed for the first of ours.
        pairs = ((name, each) for name in missing for each in free)
        alike = dict(islice((pair for pair in pairs if pair[1] not in beside.get(pair[0], ())), 1))
    return [
        f"--map {quote(name)}={alike[name]}" if name in alike else f"--skip-env {quote(name)}"
        for name in missing
    ]

"""Chooses the overlays of an app for the environments of ucp.yaml; refuses to guess."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from k8s_ucp.errors import UsageError, command_line

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.adding.flags import AppFlags


def likeliest_folder(name: str, folders: Sequence[str]) -> str:
    """The folder with the name of the app, or else the first one."""
    return next((each for each in folders if each.rpartition("/")[2] == name), folders[0])


def add_command(flags: AppFlags, folder: str) -> str:
    """The command for one of the folders below the given one."""
    path = "/".join(each.rstrip("/") for each in (flags.path, folder) if each)
    words = [flags.name, path]
    if flags.repo:
        ref = ("--ref", flags.revision) if flags.revision else ()
        words = [flags.name, flags.repo, "--path", path, *ref]
    everything = command_line("ucp", "app", "import", flags.repo or flags.path or ".")
    return (
        f"{command_line('ucp', 'app', 'add', *words)} (or another one; {everything} lists them all)"
    )


def environment_overlays(
    name: str, folders: Mapping[str, str], environments: list[str]
) -> dict[str, str]:
    """{environment: folder} for an app with a folder per environment.

    Raises UsageError if some environments have none, since guessing could deploy the wrong one.
    """
    missing = [each for each in environments if each not in folders]
    if missing:
        proposed = {each: _alike(each, folders) or "DIR" for each in environments}
        raise _not_named(name, folders, missing, proposed)
    return {each: folders[each] for each in environments}


def check_other_overlays(
    call: Invocation, name: str, overlay_names: list[str], environments: list[str]
) -> None:
    """Report overlays in overlays/ whose names are not those of environments.

    Raises UsageError if one of them is probably meant for an environment without an overlay.
    """
    missing = [each for each in environments if each not in overlay_names]
    free = {each: f"overlays/{each}" for each in overlay_names if each not in environments}
    proposed = {each: folder for each in missing if (folder := _alike(each, free))}
    if proposed:
        raise _not_named(name, overlay_names, missing, proposed)
    if overlay_names and missing:
        call.console.say(
            f"{name}: no overlay for {', '.join(missing)}, only for {', '.join(overlay_names)} "
            "(--overlay ENV=DIR names one)"
        )


def refuse_environment_folders(
    flags: AppFlags, files: Mapping[str, bytes], environments: Collection[str]
) -> None:
    """Refuse plain manifests in folders named like environments: all would go to each environment.

    Raises UsageError.
    """
    from k8s_ucp.gitops.imports.findings import NAMES
    from k8s_ucp.gitops.manifests.forms import is_kustomization, overlays

    if is_kustomization(files) or "Chart.yaml" in files or overlays(files):
        return
    tops = {path.partition("/")[0] for path in files if "/" in path}
    folders = sorted(tops & (NAMES | {*environments}) - {"test", "testing"})
    if folders:
        source = command_line(flags.path or ".")
        if flags.repo:
            source = f"FOLDER of a clone of {flags.repo}"
        raise UsageError(
            f"the app {flags.name} has manifests of its own for {', '.join(folders)}, which would "
            "all be on every environment",
            next=f"ucp app import {source} makes an overlay of each",
        )


def _not_named(
    app: str, overlay_names: Iterable[str], missing: list[str], proposed: Mapping[str, str]
) -> UsageError:
    """The error for environments without an overlay. proposed: {environment: a folder}"""
    pairs = (("--overlay", f"{each}={folder}") for each, folder in proposed.items())
    flags = command_line(*chain.from_iterable(pairs))
    return UsageError(
        f"the app {app} has overlays for {', '.join(overlay_names)}, "
        f"but not for {', '.join(missing)}",
        next=f"name one for each environment: run the command again with {flags}",
    )


def _alike(environment: str, folders: Mapping[str, str]) -> str | None:
    """The folder whose name resembles that of an environment."""
    from k8s_ucp.topology.problems import nearest

    longer = (each for each in folders if each.startswith(environment))
    name = next(longer, None) or nearest(environment, folders)
    return folders[name] if name else None

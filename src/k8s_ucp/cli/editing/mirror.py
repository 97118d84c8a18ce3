"""`ucp mirror`: lists, adds and removes mirrors of Secrets and ConfigMaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from k8s_ucp.cli.command import ListOutput, ListOutputOption, declare, examples, invocation, option
from k8s_ucp.cli.editing.deletion import how_far, open_core
from k8s_ucp.cli.editing.topology_edit import edit_topology
from k8s_ucp.cli.topology_selection import (
    asking_core,
    chosen_view,
    declared_topology,
    environment_names,
    mirror_names,
)
from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.inspect.mirror_status import mirror_details
from k8s_ucp.kube import SYNCER
from k8s_ucp.topology.edit import with_item, without_item

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

app = declare("List, add and remove mirrors.")


@app.command("list", short_help="List mirrors and their sync state per app cluster.")
def show(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the mirrors with their sources and their sync state per app cluster."""
    call = invocation(ctx)
    context = chosen_view(call)
    with asking_core(context):
        data = mirror_details(context.kube.list_all(SYNCER))
    rows = [
        [
            each["name"],
            ", ".join(each["sources"]),
            ", ".join(_shown(target) for target in each["targets"]),
            f"{each['synced']} of {each['copies']}",
            "ready" if each["ready"] else "NOT READY",
            each["message"][:100],
        ]
        for each in data
    ]
    columns = ("mirror", "copies", "to", "done", "state", "why")
    none = "no mirrors; add one: ucp mirror add NAME --from NAMESPACE/NAME --to NAMESPACE"
    call.show_list(output, data, columns, rows, none=none)


@app.command(
    short_help="Add a mirror to ucp.yaml and the core repository.",
    epilog=examples(
        "ucp mirror add quotes --from ucp-clusters/quotes-conn --to quote",
        "ucp mirror add logins --from ucp-clusters --label purpose=login --to echo",
    ),
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new mirror.")],
    source: Annotated[
        str, option("--from", "NAMESPACE/NAME", "Object to copy; with --label, its namespace.")
    ],
    namespace: Annotated[
        str, option("--to", "NAMESPACE", "Namespace of the copies on the app clusters.")
    ],
    label: Annotated[
        list[str] | None,
        option("--label", "KEY=VALUE", "Copy all objects with this label; repeatable."),
    ] = None,
    kind: Annotated[
        Literal["secret", "configmap"], option("--kind", None, "Kind of the objects to copy.")
    ] = "secret",
    env: Annotated[
        list[str] | None,
        option(
            "--env",
            "NAME",
            "Environment to copy to; repeatable. Default: all environments.",
            autocompletion=environment_names,
        ),
    ] = None,
    target_name: Annotated[
        str | None, option("--name", "NAME", "Name of the copy. Default: name of the source.")
    ] = None,
    key: Annotated[
        list[str] | None,
        option(
            "--key",
            "COPY=SOURCE",
            "Key of the copy and key of the source; repeatable. Default: all keys.",
        ),
    ] = None,
    retain: Annotated[
        bool, option("--retain", None, "Keep the copies when the mirror is removed.")
    ] = False,
    adopt: Annotated[
        bool, option("--adopt", None, "Take over an existing object that has the name of the copy.")
    ] = False,
) -> None:
    """Add a mirror to ucp.yaml and the core repository, and push."""
    call = invocation(ctx)
    where, _, what = source.partition("/")
    if bool(what) == bool(label):
        raise UsageError(
            f"--label and the name in --from {source} are mutually exclusive"
            if what
            else f"--from {source} names no object",
            next=f"--from {where}/NAME, or --from {where} --label KEY=VALUE",
        )
    origin: dict[str, Any] = {"namespace": where}
    if what:
        origin["name"] = what
    if label:
        origin["labels"] = _pairs(label, "--label", "KEY=VALUE")
    if kind != "secret":
        origin["kind"] = kind
    targets: dict[str, Any] = {"namespace": namespace}
    if env:
        targets["environments"] = env
    if target_name:
        targets["name"] = target_name
    if key:
        targets["keys"] = _pairs(key, "--key", "COPY=SOURCE")
    item: dict[str, Any] = {"name": name, "source": origin, "targets": targets}
    if retain:
        item["deletionPolicy"] = "Retain"
    if adopt:
        item["conflictPolicy"] = "Adopt"
    topology = edit_topology(
        call,
        lambda text, path: with_item(text, "mirrors", item, path),
        subject=f"Add the mirror {name}",
    )
    call.console.say(f"mirror {name} added; {how_far(call, topology, 'ucp mirror list')}")
    if namespace not in (known := _namespaces(topology)):
        call.console.say(
            f"note: the namespace {namespace} is of no app or team of ucp.yaml, and is created if "
            f"it is missing; theirs: {some_of(known) or 'none'}"
        )


@app.command(short_help="Remove a mirror and its copies.")
def remove(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the mirror.", autocompletion=mirror_names),
    ],
) -> None:
    """Remove a mirror and its copies from ucp.yaml and the core repository, and push."""
    call = invocation(ctx)
    before = declared_topology(call).spec.mirrors
    topology = edit_topology(
        call,
        lambda text, path: without_item(text, "mirrors", name, path),
        subject=f"Remove the mirror {name}",
    )
    if any(each.name == name and each.deletion_policy == "Retain" for each in before):
        how = "its copies are kept"
    elif core := open_core(call, topology):
        core.close()
        how = "its copies are being deleted"
    else:
        how = "the core cluster is not running: its copies are deleted at the next start"
    call.console.say(f"mirror {name} removed; {how}")


def _namespaces(topology: Topology) -> list[str]:
    """The namespaces of the apps and teams of ucp.yaml."""
    spec = topology.spec
    of_apps = {each for app in spec.apps for each in (app.home, *app.namespaces)}
    return sorted(of_apps | {each.namespace for each in spec.teams})


def _pairs(words: list[str], flag: str, form: str) -> dict[str, str]:
    found = {}
    for each in words:
        left, equals, right = each.partition("=")
        if not equals or not left or not right:
            raise UsageError(f"{flag} {each} is not a valid {form}")
        found[left] = right
    return found


def _shown(target: dict[str, Any]) -> str:
    return str(target["cluster"]) + ("" if target["ready"] else " (not ready)")

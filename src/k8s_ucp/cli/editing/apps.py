"""`ucp app`: the apps of the topology."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import Invocation, declare, invocation
from k8s_ucp.cli.console import table
from k8s_ucp.cli.editing.leaving import check_core_answers, how_far, remove_applications
from k8s_ucp.cli.editing.topology_edit import edit_topology, up_to_date
from k8s_ucp.cli.output import Output, OutputOption, notation
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import read_images
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.publish.merge import Known
from k8s_ucp.topology import APPS, Topology, load, parse
from k8s_ucp.topology.edit import with_item, without_item

app = declare("List, add and remove apps.")
_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)/kustomization\.ya?ml")


@app.callback()
def _group() -> None:
    """List, add and remove apps."""


@app.command("list", short_help="List apps and their versions per environment.")
def show(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """List the apps with their versions in each environment, as in the app repository."""
    call = invocation(ctx)
    topology = load(call.workspace.topology_file)
    versions = _versions(call, topology)
    known = {each.name: each for each in topology.spec.apps}
    data: list[dict[str, Any]] = []
    for name in [*known, *sorted(versions.keys() - known.keys())]:
        found = known.get(name)
        data.append(
            {
                "name": name,
                "from": (found.path or found.repo or found.image) if found else None,
                "hosts": list(found.hosts) if found else [],
                "database": found.database if found else None,
                "versions": versions.get(name, {}),
                "declared": found is not None,
            }
        )
    if output is not Output.table:
        call.console.data(notation(data, output))
        return
    environments = [each.name for each in topology.spec.environments]
    rows = [
        [
            each["name"],
            each["from"] or "in the repository, not in ucp.yaml",
            *(_shown(each["versions"].get(name)) for name in environments),
        ]
        for each in data
    ]
    call.console.data(table(("app", "from", *environments), rows, width=call.console.width))


@app.command(short_help="Add an app; it runs on every environment.")
def add(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"A name of your own, or: {', '.join(APPS)}.")
    ],
    image: Annotated[
        str | None, typer.Option("--image", metavar="NAME", help="The image, without its tag.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Its first tag.")] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="DIR", help="A folder of manifests beside ucp.yaml."),
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="URL", help="A git repository of manifests.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REV", help="Its tag or commit.")
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="In front of <environment>.<domain>; again."),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", metavar="N", help="For --image: how many pods.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="NAME", help="Its database, made where it is new."),
    ] = None,
    database_provider: Annotated[
        str,
        typer.Option("--database-provider", metavar="P", help="Who makes it: gcp, aws or local."),
    ] = "local",
) -> None:
    """Add an app to ucp.yaml and to the app repository, and push: it runs on every environment."""
    call = invocation(ctx)
    item: dict[str, Any] = {"name": name}
    given = {
        "image": image,
        "tag": tag,
        "path": path,
        "repo": repo,
        "revision": revision,
        "hosts": host,
        "replicas": replicas,
        "database": database,
    }
    if not (image or path or repo):
        if name not in APPS:
            raise UsageError(
                f"no app is known by the name '{name}'; known: {', '.join(APPS)}",
                next=f"ucp app add {name} --image NAME --tag TAG (or --path DIR, --repo URL)",
            )
        known = APPS[name].model_dump(by_alias=True, exclude_unset=True)
        given = {key: given.get(key) or known.get(key) for key in given}
    item |= {key: value for key, value in given.items() if value is not None}
    item = {key: list(each) if key == "hosts" else each for key, each in item.items()}

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        databases = {each.name for each in parse(text, file).spec.databases}
        if item.get("database") and item["database"] not in databases:
            new = {"name": item["database"], "provider": database_provider}
            text, _ = with_item(text, "databases", new, file)
        return with_item(text, "apps", item, file)

    topology = edit_topology(call, edit)
    call.console.say(f"app {name} added; {how_far(call, topology, 'ucp status --watch')}")


@app.command(short_help="Remove an app from every environment.")
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The app's name.")],
) -> None:
    """Remove an app from ucp.yaml, from the app repository and from every environment."""
    call = invocation(ctx)

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        edited = without_item(text, "apps", name, file)
        check_core_answers(call, edited[1], name)
        return edited

    topology = edit_topology(call, edit, leaving=Known(frozenset(), frozenset([name])))
    remove_applications(call, topology, name)
    call.console.say(f"app {name} removed")


def _versions(call: Invocation, topology: Topology) -> dict[str, dict[str, list[str]]]:
    """{app: {environment: its images with their versions}} of the app repository's tip."""
    folder = call.workspace.gitops(topology.name).apps
    if not folder.is_dir():
        return {}
    clone = up_to_date(call, topology, folder)
    commit = clone.resolve(f"refs/remotes/origin/{topology.spec.git.branch}")
    found: dict[str, dict[str, list[str]]] = {}
    for path, content in (clone.read(commit, "apps") if commit else {}).items():
        match = _OVERLAY.fullmatch(path)
        if not match:
            continue
        try:
            images = read_images(content.decode("utf-8"), path)
        except (NotEditable, ValueError):
            images = []
        found.setdefault(match[1], {})[match[2]] = [
            f"{each.new_name or each.name}:{each.pin}" for each in images
        ]
    return found


def _shown(versions: list[str] | None) -> str:
    return "" if versions is None else ", ".join(each.rpartition(":")[2] for each in versions)

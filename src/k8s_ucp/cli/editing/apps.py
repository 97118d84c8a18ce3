"""`ucp app`: the apps of the topology."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import Invocation, Output, OutputOption, declare, invocation, option
from k8s_ucp.cli.editing.app_adding import COPIES, AppFlags, AuthOption, RevisionOption, item_of
from k8s_ucp.cli.editing.app_import import import_apps
from k8s_ucp.cli.editing.app_preview import grant, preview, tell
from k8s_ucp.cli.editing.deletion import check_core_answers, how_far, remove_applications
from k8s_ucp.cli.editing.kind_deletion import delete_kinds, kinds_brought
from k8s_ucp.cli.editing.namespace_deletion import delete_namespaces
from k8s_ucp.cli.editing.topology_edit import edit_topology, up_to_date
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import read_images
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.publish.merge import Scope
from k8s_ucp.topology import APPS, App, Topology, load, parse
from k8s_ucp.topology.edit import with_item, without_item
from k8s_ucp.topology.parts import APP_FORMS

app = declare("List, add and remove apps.")
_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)/kustomization\.ya?ml")
_CHART = re.compile(r"apps/([^/]+)/overlays/([^/]+)/Chart\.yaml")


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
                "from": _origin(found) if found else None,
                "hosts": list(found.hosts) if found else [],
                "database": found.database if found else None,
                "versions": versions.get(name, {}),
                "declared": found is not None,
            }
        )
    environments = [each.name for each in topology.spec.environments]
    rows = [
        [
            each["name"],
            each["from"] or "in the repository only, not in ucp.yaml",
            *(_shown(each["versions"].get(name)) for name in environments),
        ]
        for each in data
    ]
    call.show_list(output, data, ("app", "from", *environments), rows)


@app.command(short_help="Add an app to all environments.")
def add(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"Name of the new app, or of a built-in app: {', '.join(APPS)}."
        ),
    ],
    image: Annotated[
        str | None, option("--image", "NAME", "Image of the app, without tag.")
    ] = None,
    tag: Annotated[str | None, option("--tag", "TAG", "Initial tag of the image.")] = None,
    path: Annotated[
        str | None,
        option(
            "--path",
            "DIR",
            "Folder with a kustomization, a Helm chart, manifests or jsonnet; copied "
            "if it is outside of the workspace. With --repo: folder in that repository.",
        ),
    ] = None,
    repo: Annotated[
        str | None,
        option("--repo", "REPO", "URL of a git repository; with --chart: of a Helm repository."),
    ] = None,
    revision: RevisionOption = None,
    chart: Annotated[
        str | None, option("--chart", "NAME", "Name of a Helm chart in --repo, or oci://…/NAME.")
    ] = None,
    version: Annotated[
        str | None, option("--version", "V", "Version of --chart (default: the newest).")
    ] = None,
    form: Annotated[
        str | None,
        option(
            "--as", "FORM", f"Form of the manifests (default: detected): {', '.join(APP_FORMS)}."
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        option(
            "--values",
            "[ENV=]FILE",
            "Values file of a Helm chart, for all environments or one; repeatable.",
        ),
    ] = None,
    overlay: Annotated[
        list[str] | None,
        option(
            "--overlay",
            "ENV=DIR",
            "Kustomize overlay of an environment, if its name differs; repeatable.",
        ),
    ] = None,
    namespace: Annotated[
        str | None, option("--namespace", "NAME", "Where it runs; its name without it.")
    ] = None,
    also_namespace: Annotated[
        list[str] | None,
        option("--also-namespace", "NAME", "A further namespace it may write to; again."),
    ] = None,
    cluster_kind: Annotated[
        list[str] | None,
        option(
            "--cluster-kind",
            "KIND",
            "A kind outside of namespaces that it may bring, such as ClusterRole; again.",
        ),
    ] = None,
    auth: AuthOption = None,
    host: Annotated[
        list[str] | None,
        option("--host", "NAME", "Host name, prefixed to <environment>.<domain>; repeatable."),
    ] = None,
    replicas: Annotated[
        int | None, option("--replicas", "N", "With --image: number of pods.")
    ] = None,
    database: Annotated[
        str | None,
        option("--database", "NAME", "Name of the app's database; created if it does not exist."),
    ] = None,
    database_provider: Annotated[
        str, option("--database-provider", "P", "Provider of the database: gcp, aws or local.")
    ] = "local",
    dry_run: Annotated[
        bool,
        option(
            "--dry-run", None, "Print the changes and all rendered objects without applying them."
        ),
    ] = False,
) -> None:
    """Add an app to ucp.yaml and the app repository, and push. It runs on every environment.

    Takes an image, a folder or a git repository with a kustomization, a Helm chart, plain manifests
    or jsonnet, or a chart from a Helm repository or an OCI registry.
    """
    call = invocation(ctx)
    if form is not None and form not in APP_FORMS:
        raise UsageError(f"--as {form} is not valid; valid values: {', '.join(APP_FORMS)}")
    more: dict[str, Any] = {
        "image": image,
        "tag": tag,
        "as": form,
        "namespace": namespace,
        "namespaces": list(also_namespace or ()),
        "clusterKinds": list(cluster_kind or ()),
        "hosts": list(host or ()),
        "replicas": replicas,
        "database": database,
    }
    if not (image or path or repo or chart):
        if name not in APPS:
            raise UsageError(
                f"unknown app '{name}'; built-in apps: {', '.join(APPS)}",
                next=f"ucp app add {name} --image NAME --tag TAG (or --path DIR, --repo URL, "
                "--chart NAME)",
            )
        known = APPS[name].model_dump(by_alias=True, exclude_unset=True)
        more = {key: more.get(key) or known.get(key) for key in {**known, **more}}
        more = {key: list(each) if key == "hosts" else each for key, each in more.items()}
        more.pop("name", None)
    wanted = AppFlags(
        name=name,
        path=path,
        repo=repo,
        revision=revision,
        chart=chart,
        version=version,
        auth=auth,
        values=tuple(values or ()),
        overlays=tuple(overlay or ()),
        more=more,
    )
    topology = load(call.workspace.topology_file)
    if name in {each.name for each in topology.spec.apps}:
        raise UsageError(
            f"'{name}' already exists in apps of ucp.yaml",
            next=f"choose another name, or edit {call.workspace.topology_file}",
        )
    with item_of(call, topology, wanted) as item:

        def edit(text: str, file: Path) -> tuple[str, Topology]:
            databases = {each.name for each in parse(text, file).spec.databases}
            if item.get("database") and item["database"] not in databases:
                new = {"name": item["database"], "provider": database_provider}
                text, _ = with_item(text, "databases", new, file)
            return with_item(text, "apps", item, file)

        if dry_run:
            preview(call, edit, name)
            # The copies that were made to look at go again.
            raise typer.Exit
        tell(call, edit, name)
        grant(call, edit, {name: item})
        topology = edit_topology(call, edit, subject=f"Add the app {name}")
    call.console.say(f"app {name} added; {how_far(call, topology, 'ucp status --watch')}")


app.command("import", short_help="Add the apps of an existing GitOps repository.")(import_apps)


@app.command(short_help="Remove an app from every environment.")
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the app.")],
) -> None:
    """Remove an app from ucp.yaml, the app repository and all environments."""
    call = invocation(ctx)
    before = load(call.workspace.topology_file)
    declared = {each.name: each for each in before.spec.apps}

    def edit(text: str, file: Path) -> tuple[str, Topology]:
        edited = without_item(text, "apps", name, file)
        check_core_answers(call, edited[1], name)
        return edited

    def as_it_is(text: str, file: Path) -> tuple[str, Topology]:
        return text, parse(text, file)

    kinds = kinds_brought(call, before, name) if name in declared else {}
    removed = Scope(frozenset(), frozenset([name]))
    topology = edit_topology(call, edit, subject=f"Remove the app {name}", removed=removed)
    if remove_applications(call, topology, name):
        # Its project stayed until its Applications were gone.
        edit_topology(call, as_it_is, subject=f"Remove the project of the app {name}")
        delete_kinds(call, topology, kinds)
        if name in declared:
            delete_namespaces(call, topology, declared[name])
    copy = f"{COPIES}/{name}"
    kept = f"; its files stay in {copy}" if (call.workspace.root / copy).exists() else ""
    call.console.say(f"app {name} removed{kept}")


def _origin(app: App) -> str | None:
    if app.chart:
        return f"{app.chart.repo}/{app.chart.name} {app.chart.version}"
    return app.repo or app.path or app.image


def _versions(call: Invocation, topology: Topology) -> dict[str, dict[str, list[str]]]:
    """{app: {environment: its images with their versions}} of the app repository's tip."""
    folder = call.workspace.gitops(topology.name).apps
    if not folder.is_dir():
        return {}
    clone = up_to_date(call, topology, folder)
    commit = clone.resolve(f"refs/remotes/origin/{topology.spec.git.branch}")
    found: dict[str, dict[str, list[str]]] = {}
    for path, content in (clone.read(commit, "apps") if commit else {}).items():
        if match := _CHART.fullmatch(path):
            # A chart's name may be shared by apps; what differs is its version.
            chart = _chart_of(content)
            found.setdefault(match[1], {})[match[2]] = [chart] if chart else []
            continue
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


def _chart_of(content: bytes) -> str | None:
    """`<chart>:<version>` as Chart.yaml says; None where it says neither."""
    from k8s_ucp.gitops.manifests.forms import chart_file

    try:
        chart = chart_file({"Chart.yaml": content})
    except UsageError:
        return None
    return f"{chart.name}:{chart.version}"


def _shown(versions: list[str] | None) -> str:
    return "" if versions is None else ", ".join(each.rpartition(":")[2] for each in versions)

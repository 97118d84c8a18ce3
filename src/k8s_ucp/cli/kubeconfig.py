"""`ucp kubeconfig NAME`: a way into a cluster with kubectl, printed or merged into the user's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from k8s_ucp.cli.chosen import chosen_context
from k8s_ucp.cli.command import declare, invocation
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.steps.context import Context
from k8s_ucp.workspace import write_private_file

app = declare()

PARTS = ("clusters", "users", "contexts")


@app.command()
def kubeconfig(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A cluster or an environment: demo-core, core, stage."),
    ],
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Add it to your own kubeconfig, as the current context."),
    ] = False,
) -> None:
    """Print a cluster's kubeconfig. It holds the key of its admin."""
    call = invocation(ctx)
    context = chosen_context(call)
    cluster = _cluster(context, name)
    config = renamed(context.provider.kubeconfig(cluster), cluster)
    if not merge:
        call.console.data(json.dumps(config, indent=2))
        return
    path = _own_file()
    _write_merged(path, config)
    call.console.say(f"{path} has the context {cluster} now, and it is the current one")


def _cluster(context: Context, name: str) -> str:
    """The cluster that is meant: by its own name, or by its environment's."""
    known = context.provider.names()
    for each in (name, context.topology.app_cluster(name)):
        if each in known:
            return each
    if not known:
        raise UcpError(f"{context.topology.name} has no clusters", next="ucp start")
    raise UsageError(
        f"there is no cluster {name}; there are {', '.join(known)}",
        next=f"ucp kubeconfig {known[0]}",
    )


def renamed(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A kubeconfig whose one cluster, user and context are called `name`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": config["clusters"][0]["cluster"]}],
        "users": [{"name": name, "user": config["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def merged(base: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`base` with the parts of `config` in it; what has the same name gives way."""
    found = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **base}
    for part in PARTS:
        new = {each["name"] for each in config[part]}
        kept = [each for each in found.get(part) or [] if each.get("name") not in new]
        found[part] = [*kept, *config[part]]
    return {**found, "current-context": config["current-context"]}


def _own_file() -> Path:
    """The file that kubectl writes to."""
    named = [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return Path(named[0]) if named else Path.home() / ".kube" / "config"


def _write_merged(path: Path, config: dict[str, Any]) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        base = YAML(typ="safe", pure=True).load(path.read_text("utf-8")) if path.exists() else {}
        if not isinstance(base or {}, dict):
            raise ValueError("not a mapping")
        text = json.dumps(merged(base or {}, config), indent=2) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link stays a link.
        write_private_file(path.resolve(), text)
    except OSError as error:
        raise UcpError(f"can't write {path}: {error.strerror}") from error
    except (YAMLError, ValueError, AttributeError, TypeError) as error:
        raise UcpError(
            f"{path} is no kubeconfig: left as it is", next=f"move {path} away and try again"
        ) from error

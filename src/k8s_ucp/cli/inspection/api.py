"""`ucp api render`: renders the resources of a claim, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from k8s_ucp import yaml_io
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    declare,
    examples,
    invocation,
    notation,
    option,
)
from k8s_ucp.cli.topology_selection import declared_file, refuse_inner_folder
from k8s_ucp.compositions import patch_and_transform, user_code
from k8s_ucp.compositions.definitions import Definitions
from k8s_ucp.compositions.function import Function, Request, Response
from k8s_ucp.compositions.pipeline import render as composed
from k8s_ucp.errors import ProgramMissing, UcpError, UsageError
from k8s_ucp.gitops.render.repositories import platform_api
from k8s_ucp.topology import Topology, default, load

app = declare("Render the resources of claims (databases and machines).")

_NOT_OBJECTS = "kustomization.yaml"
_HOW_TO_WRITE = "write a claim as docs/kinds.md shows it"


@app.command(
    short_help="Render the resources of a claim.",
    epilog=examples(
        "ucp api render store.yaml",
    ),
)
def render(
    ctx: typer.Context,
    claim: Annotated[Path, typer.Argument(metavar="CLAIM.yaml", help="File with the claims.")],
    file: Annotated[
        Path | None, option("--file", "FILE", "Path of the topology file. Default: ucp.yaml.")
    ] = None,
    output: Annotated[
        Literal["yaml", "json"], option("-o", None, "Output format: yaml or json.", "--output")
    ] = "yaml",
) -> None:
    """Render the resources that Crossplane composes for a claim; nothing is created.

    Definitions and Compositions are the platform's, and those below api/ in the working clone of
    the core repository, committed or not; so are functions, in api/functions/NAME/main.py.
    """
    call = invocation(ctx)
    if not file:
        refuse_inner_folder(call)
    topology = _topology(call, file)
    clone = call.workspace.gitops(topology.name).core
    definitions = Definitions.among(_objects({**platform_api(topology), **_own_api(clone)}))
    functions = {patch_and_transform.NAME: patch_and_transform.compose, **_own_functions(clone)}
    try:
        claims = list(_documents(claim.read_text("utf-8"), str(claim)))
    except OSError as error:
        raise UsageError(
            f"failed to read {claim}: {error.strerror}",
            next=f"name an existing file, or {_HOW_TO_WRITE}",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{claim} is not valid UTF-8", next="save it as UTF-8") from error
    if not claims:
        raise UsageError(f"{claim} contains no object", next=_HOW_TO_WRITE)
    found = [each for one in claims for each in composed(one, definitions, functions)]
    if output == "json":
        call.console.data(notation(found, Output.json))
    else:
        call.console.data("---\n".join(yaml_io.dump(each) for each in found).rstrip("\n"))


def _topology(call: Invocation, file: Path | None) -> Topology:
    path = file or declared_file(call)
    return load(path) if file or path.exists() else default("demo", (), ())


def _own_api(clone: Path) -> dict[str, bytes]:
    """The files that people added, by path; empty if there is no clone yet."""
    try:
        return {
            path.relative_to(clone).as_posix(): path.read_bytes()
            for path in sorted((clone / "api").rglob("*"))
            if path.is_file()
        }
    except OSError as error:
        raise UcpError(f"failed to read {clone / 'api'}: {error.strerror}") from error


def _own_functions(clone: Path) -> dict[str, Function]:
    paths = [path.relative_to(clone).as_posix() for path in (clone / user_code.FOLDER).rglob("*")]
    names = user_code.names(paths, reserved=patch_and_transform.NAME)
    return {name: _lazily(clone / user_code.FOLDER / name) for name in names}


def _lazily(folder: Path) -> Function:
    """Loads the function on its first call, since only then Crossplane's SDK is needed."""

    def compose(request: Request) -> Response:
        try:
            from k8s_ucp.compositions.user_functions import in_folder
        except ModuleNotFoundError as error:
            raise ProgramMissing(
                f"functions in Python need {error.name}, which is not installed",
                next="pip install 'k8s-ucp[cloud]' (in a checkout: make install-cloud)",
            ) from None
        return in_folder(folder)(request)

    return compose


def _objects(files: dict[str, bytes]) -> Iterator[Any]:
    for path, content in sorted(files.items()):
        if path.startswith(f"{user_code.FOLDER}/"):
            continue
        if path.endswith((".yaml", ".yml")) and not path.endswith(_NOT_OBJECTS):
            yield from _documents(content.decode("utf-8", "replace"), path)


def _documents(text: str, source: str) -> Iterator[Any]:
    try:
        for each in yaml_io.load_all(text):
            if isinstance(each, dict):
                yield each
            elif each is not None:
                raise UsageError(
                    f"{source} contains a document that is not an object", next=f"correct {source}"
                )
    except (yaml_io.YAMLError, ValueError) as error:
        raise UsageError(
            f"{source} is not valid YAML: {error}", next=f"correct {source}"
        ) from error

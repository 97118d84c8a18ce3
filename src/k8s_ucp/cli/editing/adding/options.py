"""The arguments and options of `ucp app add`; `ucp app import` has those of a repository, too."""

from __future__ import annotations

from typing import Annotated

import typer

from k8s_ucp.cli.command import option
from k8s_ucp.clouds import database_providers
from k8s_ucp.topology import APPS
from k8s_ucp.topology.parts import APP_FORMS

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help=f"Name of the new app, or of a built-in app: {', '.join(APPS)}."
    ),
]
SourceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SOURCE]",
        help="Folder, file, URL of a git repository, oci://…/CHART or IMAGE:TAG; "
        "instead of --path, --repo, --chart, --image.",
        show_default=False,
    ),
]
ImageOption = Annotated[
    str | None, option("--image", "NAME", "Image of the app, with its tag or --tag.")
]
TagOption = Annotated[str | None, option("--tag", "TAG", "Initial tag of the image.")]
PathOption = Annotated[
    str | None,
    option(
        "--path",
        "DIR",
        "Folder with a kustomization, a Helm chart, manifests or jsonnet, or one file; copied "
        "if it is outside of the workspace. With --repo: in that repository.",
    ),
]
RepoOption = Annotated[
    str | None,
    option("--repo", "REPO", "URL of a git repository; with --chart: of a Helm repository."),
]
ChartOption = Annotated[
    str | None, option("--chart", "NAME", "Name of a Helm chart in --repo, or oci://…/NAME.")
]
VersionOption = Annotated[
    str | None, option("--version", "VERSION", "Version of --chart. Default: the newest.")
]
FormOption = Annotated[
    str | None,
    option("--as", "FORM", f"Form of the manifests: {', '.join(APP_FORMS)}. Default: detected."),
]
ValuesOption = Annotated[
    list[str] | None,
    option(
        "--values",
        "[ENV=]FILE",
        "Values file of a Helm chart, for all environments or one; repeatable.",
    ),
]
OverlayOption = Annotated[
    list[str] | None,
    option(
        "--overlay",
        "ENV=DIR",
        "Kustomize overlay of an environment, if its name differs; repeatable.",
    ),
]
NamespaceOption = Annotated[
    str | None, option("--namespace", "NAME", "Namespace of the app. Default: its name.")
]
AlsoNamespaceOption = Annotated[
    list[str] | None,
    option(
        "--also-namespace",
        "NAME",
        "Additional namespace that the app may write to; repeatable.",
    ),
]
ClusterKindOption = Annotated[
    list[str] | None,
    option(
        "--cluster-kind",
        "KIND",
        "Cluster-scoped kind that the app may create, such as ClusterRole; repeatable.",
    ),
]
FromOutsideOption = Annotated[
    list[str] | None,
    option(
        "--from-outside",
        "KIND/NAME",
        "Secret or ConfigMap that something else creates in the app's namespace; repeatable.",
    ),
]
HostOption = Annotated[
    list[str] | None,
    option("--host", "NAME", "Host name, prefixed to <environment>.<domain>; repeatable."),
]
ReplicasOption = Annotated[int | None, option("--replicas", "N", "With --image: number of pods.")]
PortOption = Annotated[
    int | None,
    option(
        "--port",
        "N",
        "With --image: port that the container listens on, also its variable PORT. Default: 8080.",
    ),
]
DatabaseOption = Annotated[
    str | None,
    option("--database", "NAME", "Name of the app's database; created if it does not exist."),
]
DatabaseProviderOption = Annotated[
    str | None,
    option(
        "--database-provider",
        "P",
        f"Provider of the database: {', '.join(database_providers())}. Default: a simulated "
        "cloud if there is one, else local.",
    ),
]
DryRunOption = Annotated[
    bool,
    option("--dry-run", None, "Print the changes and all rendered objects without applying them."),
]
RevisionOption = Annotated[
    str | None,
    option("--revision", "REV", "Branch, tag or commit in REPO; pinned to the commit.", "--ref"),
]
AuthOption = Annotated[
    str | None, option("--auth", "NAME", "Name of the credential in ucp.yaml for REPO.")
]

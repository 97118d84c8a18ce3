"""Rules about names, which become files, objects and namespaces and may collide there, and about
credentials in URLs. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from k8s_ucp.redaction import holds_credential
from k8s_ucp.topology.problems import Loc, Problem, shown
from k8s_ucp.topology.values import HOST_LENGTH

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec, Topology
    from k8s_ucp.topology.parts import App

NAME_LENGTH = 63
"""Longest RFC 1123 label and label value, as which `<topology>-<environment>` is used."""

DATABASE_COPY = "database"
"""Name of the Secret that an app with a database reads, and suffix of its Syncer's name."""

PLATFORM_NAMESPACES = frozenset(
    [
        *("gmp-system", "kube-node-lease", "kube-public", "kube-system", "local-path-storage"),
        *("k8s-ucp", "ucp-databases"),
        *("argo-rollouts", "external-dns", "ingress-nginx", "monitoring", "traefik", "velero"),
    ]
)
"""Namespaces of Kubernetes, clouds and kind, of the reconciler and local databases, and of all
add-ons. Guard rails exempt them."""

LOCAL_DATABASES = "local-databases"
"""The Syncer that copies the passwords of databases to app clusters."""

_GIT_SERVER = "git-server"
"""An Application of templates/core/bootstrap; it has a hyphen, as those of apps have."""

PLATFORM_APPLICATIONS = frozenset(
    f"platform-{each}"
    for each in (
        *(
            "policies",
            "databases",
            "traefik",
            "ingress-nginx",
            "gateway-api",
            "prometheus",
            "loki",
            "alloy",
        ),
        *("external-dns", "argo-rollouts", "velero"),
    )
)
"""The platform's Applications on app clusters (guard rails, databases, add-ons), without
the `-<environment>` at the end."""

APP_FOLDER = re.compile(
    r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
"""Names that an app's folder may have: its Application is named for it and has it as a label."""

_NO_TEXT = re.compile(
    r"y|n|yes|no|on|off|true|false|null|[0-9]+|[0-9]+e-?[0-9]+|0x[0-9a-f]+|0o[0-7]+|0b[01]+"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
)
"""Names that some version of YAML resolves to a boolean, null, a number or a date.

Names of environments are keys of a ConfigMap, which kustomize writes without quotes: kustomize or
Argo CD then reads another name, or can't build the folder.
"""

_FILE_WITH_A_MEANING = "kustomization"
"""Files of this name are not manifests to kustomize and Argo CD."""


def find_bad_names(topology: Topology) -> Iterator[Problem]:
    """Names that are too long when combined, or that are reserved."""
    spec = topology.spec
    yield from _bad_environments(topology)
    yield from _shared_applications(spec)
    yield from _long_hosts(spec)
    for index, namespace in enumerate(spec.reconciler.source_namespaces):
        if reserved_namespace(namespace):
            yield Problem(
                ("spec", "reconciler", "sourceNamespaces", index),
                f"'{namespace}' can't be a source namespace: it contains Secrets of "
                "Kubernetes or the platform",
            )
    for index, app in enumerate(spec.apps):
        yield from _bad_app(index, app)
    yield from _bad_mirrors(spec)
    for index, database in enumerate(spec.databases):
        if database.name == _FILE_WITH_A_MEANING:
            yield Problem(("spec", "databases", index, "name"), _meaning("a database"))
    yield from _shared_databases(spec)
    yield from _bad_packages(spec)


def _bad_environments(topology: Topology) -> Iterator[Problem]:
    # With many apps on many environments, it is enough to check the longest name.
    longest = max((each.name for each in topology.spec.apps), key=len, default="")
    for index, each in enumerate(topology.spec.environments):
        at: Loc = ("spec", "environments", index, "name")
        if each.name == "core":
            yield Problem(
                at, "an environment can't be named 'core', which is reserved for the core cluster"
            )
        if not reads_as_text(each.name):
            message = (
                f"an environment can't be named '{each.name}', which YAML does not read as text, "
                "also as the key of a ConfigMap"
            )
            yield Problem(at, f"{message}: choose another name, such as env-{each.name}")
        combined = [f"{longest}-{each.name}"] if longest else []
        for name in (topology.app_cluster(each.name), *combined):
            if len(name) > NAME_LENGTH:
                message = (
                    f"'{name}' has {len(name)} characters, but at most {NAME_LENGTH} are allowed"
                )
                yield Problem(at, message)


def _bad_app(index: int, app: App) -> Iterator[Problem]:
    if taken := taken_namespace(app.name):
        yield Problem(("spec", "apps", index, "name"), taken)
    if app.form == "image" and app.name[0].isdigit():
        message = (
            f"an app with an image can't be named '{app.name}': its Service has this name, "
            f"which begins with a letter (RFC 1035): choose another name, such as my-{app.name}"
        )
        yield Problem(("spec", "apps", index, "name"), message)
    for key, named in (
        ("namespace", app.namespace),
        *(("namespaces", each) for each in app.namespaces),
    ):
        if named and closed_to_apps(named):
            message = f"namespace '{named}' is reserved for Kubernetes or the platform"
            yield Problem(("spec", "apps", index, key), message)


def _bad_mirrors(spec: Spec) -> Iterator[Problem]:
    syncers = {database_syncer(each.name): each.name for each in spec.apps if each.database}
    for index, mirror in enumerate(spec.mirrors):
        at: Loc = ("spec", "mirrors", index, "name")
        if mirror.name == LOCAL_DATABASES:
            yield Problem(
                at,
                f"a mirror can't be named '{mirror.name}': the mirror of the passwords of local "
                "databases has this name; choose another name",
            )
        if mirror.name in syncers:
            yield Problem(
                at,
                f"a mirror can't be named '{mirror.name}': the mirror of the database "
                f"of the app {syncers[mirror.name]} has this name; choose another name",
            )
        if mirror.name == _FILE_WITH_A_MEANING:
            yield Problem(at, _meaning("a mirror"))


def reads_as_text(name: str) -> bool:
    """Whether every version of YAML reads the name as a string, even without quotes."""
    return _NO_TEXT.fullmatch(name) is None


def shared_applications(
    pairs: Iterable[tuple[str, str]],
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of (app, environment) with the same Application name `<app>-<environment>`.

    Argo CD generates neither of them. The earlier pair comes first.
    """
    first: dict[str, tuple[str, str]] = {}
    found = []
    for pair in pairs:
        other = first.setdefault("-".join(pair), pair)
        if other != pair:
            found.append((other, pair))
    return found


def _shared_applications(spec: Spec) -> Iterator[Problem]:
    apps = {each.name: index for index, each in enumerate(spec.apps)}
    environments = {each.name for each in spec.environments}
    # Joined names can be equal only if one name is the other plus '-…', so thousands of apps and
    # environments don't need all of their pairs.
    rests = {name[cut + 1 :] for name in apps for cut in _hyphens(name) if name[:cut] in apps}
    ends = {
        each
        for name in environments
        for cut in _hyphens(name)
        if name[:cut] in rests and name[cut + 1 :] in environments
        for each in (name, name[cut + 1 :])
    }
    near = _prefixed(apps)
    pairs = [(app, each) for app in apps if app in near for each in sorted(ends)]
    for (app, environment), (other, another) in shared_applications(pairs):
        later = max(app, other, key=lambda name: apps[name])
        yield Problem(
            ("spec", "apps", apps[later], "name"),
            f"the app {app} on {environment} and the app {other} on {another} have the "
            f"same Application name '{app}-{environment}', and Argo CD would generate "
            "neither: rename an app or an environment",
        )
    taken = {*PLATFORM_APPLICATIONS, _GIT_SERVER}
    begins = {name[:cut] for name in taken for cut in _hyphens(name)}
    for app in apps.keys() & begins:
        index = apps[app]
        for environment in sorted(environments):
            name = f"{app}-{environment}"
            if name in taken:
                yield Problem(
                    ("spec", "apps", index, "name"),
                    f"the app {app} on {environment} has the Application name "
                    f"'{name}', which is used by the platform: rename the app or the "
                    "environment",
                )


def _shared_databases(spec: Spec) -> Iterator[Problem]:
    """Databases whose objects on the core cluster, `<database>-<environment>`, have one name."""
    indexes = {each.name: index for index, each in enumerate(spec.databases)}
    near = _prefixed(indexes)
    pairs = [
        (each.name, environment)
        for each in spec.databases
        if each.name in near
        for environment in each.environments or [every.name for every in spec.environments]
    ]
    for (database, environment), (other, another) in shared_applications(pairs):
        yield Problem(
            ("spec", "databases", max(indexes[database], indexes[other]), "name"),
            f"the database {database} of {environment} and the database {other} of {another} have "
            f"the same name '{database}-{environment}' on the core cluster, and would have one "
            "password: rename a database or an environment",
        )


def _prefixed(names: Collection[str]) -> set[str]:
    """The names of which one is another one plus `-…`, and these others."""
    return {
        each
        for name in names
        for cut in _hyphens(name)
        if name[:cut] in names
        for each in (name, name[:cut])
    }


def _hyphens(name: str) -> list[int]:
    return [index for index, each in enumerate(name) if each == "-"]


def _long_hosts(spec: Spec) -> Iterator[Problem]:
    """Hosts `<host>.<environment>.<domain>` that the API server would refuse as too long."""
    longest = max((each.name for each in spec.environments), key=len, default="")
    for index, app in enumerate(spec.apps):
        for host_index, host in enumerate(app.hosts):
            name = f"{host}.{longest}.{spec.domain}"
            if longest and len(name) > HOST_LENGTH:
                yield Problem(
                    ("spec", "apps", index, "hosts", host_index),
                    f"the host of {app.name} on {longest} has {len(name)} characters, "
                    f"but at most {HOST_LENGTH} are allowed (RFC 1123): shorten it or "
                    "spec.domain",
                )


def closed_to_apps(namespace: str) -> bool:
    """Whether no app may write to a namespace."""
    return namespace == "default" or reserved_namespace(namespace)


def reserved_namespace(name: str) -> bool:
    """Whether a namespace belongs to Kubernetes, a component or an add-on."""
    return name.startswith("kube-") or name == "argocd" or name in PLATFORM_NAMESPACES


def package_name(reference: str) -> str:
    """Object name of a Crossplane package: the last part of its repository."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _bad_packages(spec: Spec) -> Iterator[Problem]:
    for kind, references in spec.crossplane.packages:
        names = [package_name(each) for each in references]
        for index, name in enumerate(names):
            if name in names[:index]:
                at: Loc = ("spec", "crossplane", "packages", kind, index)
                yield Problem(at, f"duplicate package {name}")


def database_syncer(app: str) -> str:
    """Name of the Syncer that copies the Secret of an app's database."""
    return f"{app}-{DATABASE_COPY}"


def taken_namespace(app: str) -> str | None:
    """Why an app can't have this name, which is also its namespace; None if it can."""
    if app == "default" or app.startswith("kube-"):
        return f"an app can't be named '{app}': its namespace is reserved for Kubernetes"
    if app in PLATFORM_NAMESPACES:
        return f"an app can't be named '{app}': its namespace is reserved for the platform"
    if app in PLATFORM_APPLICATIONS:
        return f"an app can't be named '{app}': an Application of the platform has this name"
    return None


def is_deployed(app: str) -> bool:
    """Whether the ApplicationSets deploy folders of this name in the app repository."""
    return app not in PLATFORM_APPLICATIONS and bool(APP_FOLDER.fullmatch(app))


def _meaning(what: str) -> str:
    return f"{what} can't be named '{_FILE_WITH_A_MEANING}': its file name is reserved"


def find_credentials_in_urls(spec: Spec) -> Iterator[Problem]:
    """URLs of repositories with a password or a token. Messages don't repeat the URL."""
    for key, url in (("core", spec.git.core), ("apps", spec.git.apps)):
        if url and holds_credential(url):
            yield Problem(
                ("spec", "git", key),
                f"the URL in '{key}' contains a user or password, but this file is "
                "committed: set the token in the variable UCP_GIT_TOKEN",
            )
    for index, team in enumerate(spec.teams):
        if team.repo and holds_credential(team.repo):
            yield Problem(
                ("spec", "teams", index, "repo"),
                f"the URL of the team {team.name} contains a user or password, but this file is "
                "committed: configure the credential as a repository Secret of Argo CD",
            )
    for index, app in enumerate(spec.apps):
        at: Loc = ("spec", "apps", index)
        if app.chart and holds_credential(app.chart.repo):
            yield Problem(
                (*at, "chart", "repo"),
                f"the URL in {shown(at)}.chart.repo contains a user or password, but "
                "this file is committed: use a credential by chart.auth",
            )
        if app.repo and holds_credential(app.repo):
            yield Problem(
                (*at, "repo"),
                f"the URL in {shown(at)}.repo contains a user or password, but this "
                "file is committed: configure the credential as a repository Secret of "
                "Argo CD",
            )

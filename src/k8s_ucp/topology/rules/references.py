"""Rules about keys that require or exclude each other, and names that must exist. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from k8s_ucp.check_rules import RULES
from k8s_ucp.clouds import CLOUDS
from k8s_ucp.names import is_closed_to_copies
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.placement import runs_in_cluster
from k8s_ucp.topology.problems import Loc, Problem, hint, nearest, shown, some

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec
    from k8s_ucp.topology.parts import App, AppCluster, Checks, CoreCluster

_EVERYWHERE = {"provider", "version"}
"""Keys of a cluster that a provider doesn't list in its `keys`."""
SHIPPED = ("quote", "echo-client")
"""Apps whose manifests come with ucp: `path: ucp:<name>`."""


def find_bad_apps(spec: Spec) -> Iterator[Problem]:
    """Keys of apps that don't go together, and hosts of two apps."""
    taken: dict[str, str] = {}
    for index, app in enumerate(spec.apps):
        at: Loc = ("spec", "apps", index)
        yield from _bad_form(app, at)
        for place, host in enumerate(app.hosts):
            other = taken.setdefault(host, app.name)
            if other != app.name or host in app.hosts[:place]:
                yield Problem((*at, "hosts", place), f"duplicate host '{host}': {other}")


def _bad_form(app: App, at: Loc) -> Iterator[Problem]:
    if not (app.image or app.path or app.repo or app.chart):
        yield Problem(at, f"{shown(at)} requires the key 'image' (or 'path', 'repo' or 'chart')")
    if app.image and not app.tag:
        yield Problem(at, f"{shown(at)} requires the key 'tag'")
    if app.tag and not app.image:
        yield Problem((*at, "tag"), f"{shown(at)}: 'tag' requires 'image'")
    if app.repo and not app.revision:
        yield Problem(
            at, f"{shown(at)} requires the key 'revision': a tag or commit of the repository"
        )
    for key in ("revision", "auth"):
        if getattr(app, key) and not app.repo:
            yield Problem((*at, key), f"{shown(at)}: '{key}' requires 'repo'")
    if app.form != "image" and "replicas" in app.model_fields_set:
        yield Problem(
            (*at, "replicas"),
            f"{shown(at)}: 'replicas' is not allowed with 'path' or 'repo': set it in your "
            "own manifests",
        )
    if app.repo and app.path and app.path.startswith("ucp:"):
        yield Problem((*at, "path"), f"{shown(at)}: '{app.path}' is not in a repository")
    elif app.path and app.path.startswith("ucp:") and app.path[4:] not in SHIPPED:
        known = ", ".join(f"ucp:{each}" for each in SHIPPED)
        yield Problem(
            (*at, "path"), f"{shown(at)}: '{app.path}' is not built into ucp; available: {known}"
        )
    for place, path in _paths(app, at):
        if {".", ".."} & set(path.split("/")):
            yield Problem(
                place,
                f"{shown(place)}: '{path}' must not contain '.' or '..': use a path relative to "
                "the folder of ucp.yaml, such as services/quote",
            )
    yield from _bad_chart(app, at)


def _paths(app: App, at: Loc) -> Iterator[tuple[Loc, str]]:
    if app.path:
        yield (*at, "path"), app.path
    for key in ("values", "overlays"):
        yield from (((*at, key, name), path) for name, path in getattr(app, key).items())


def _bad_chart(app: App, at: Loc) -> Iterator[Problem]:
    """Keys that are not allowed with a Helm chart, or with an image."""
    if app.chart:
        for key in ("image", "path", "repo"):
            if getattr(app, key):
                yield Problem(
                    (*at, key), f"{shown(at)}: '{key}' and 'chart' are mutually exclusive"
                )
        if app.as_ not in (None, "helm"):
            yield Problem((*at, "as"), f"{shown(at)}: a chart is rendered as helm")
    if app.form == "image":
        for key in ("as", "values", "overlays"):
            if getattr(app, "as_" if key == "as" else key):
                yield Problem((*at, key), f"{shown(at)}: '{key}' is not allowed with 'image'")
    if app.hosts and (app.chart or app.as_ == "helm"):
        yield Problem(
            (*at, "hosts"),
            f"{shown(at)}: 'hosts' is not allowed with a chart: set hosts in its values",
        )


def find_dangling(spec: Spec) -> Iterator[Problem]:
    """Names of environments and databases that don't exist."""
    environments = dict.fromkeys(each.name for each in spec.environments)
    databases = {each.name: frozenset(each.environments or environments) for each in spec.databases}
    missing_in = {
        name: [each for each in environments if each not in environments_of]
        for name, environments_of in databases.items()
    }
    for index, app in enumerate(spec.apps):
        for key in ("values", "overlays"):
            here: Loc = ("spec", "apps", index, key)
            for name in getattr(app, key):
                if name not in environments:
                    yield _dangling((*here, name), name, "environment", environments)
        at: Loc = ("spec", "apps", index, "database")
        if app.database is None:
            continue
        if app.database not in databases:
            yield _dangling(at, app.database, "database", databases)
        elif missing := missing_in[app.database]:
            yield Problem(
                at,
                f"the app {app.name} runs on {some(missing)}, where the database "
                f"{app.database} does not exist: add it to the database's environments",
            )
    for index, database in enumerate(spec.databases):
        yield from _unknown(
            ("spec", "databases", index, "environments"), database.environments, environments
        )
    for index, mirror in enumerate(spec.mirrors):
        at = ("spec", "mirrors", index)
        yield from _unknown(
            (*at, "targets", "environments"), mirror.targets.environments, environments
        )
        if (mirror.source.name is None) == (not mirror.source.labels):
            yield Problem(
                (*at, "source"), f"{shown(at)}.source requires exactly one of 'name' and 'labels'"
            )
        if is_closed_to_copies(mirror.targets.namespace):
            yield Problem(
                (*at, "targets", "namespace"),
                f"copies in namespace '{mirror.targets.namespace}' are not allowed: it is reserved "
                "for Kubernetes or ucp's own identities",
            )
        if mirror.source.labels and mirror.targets.name:
            words = (
                "copies of several objects can't have the same name: select the source by 'name'"
            )
            yield Problem((*at, "targets", "name"), f"{shown(at)}: {words}")
    for name in spec.guard_rails.__pydantic_extra__ or {}:
        if name not in environments:
            yield _dangling(("spec", "guardRails", name), name, "environment", environments)


def _unknown(at: Loc, names: Iterable[str], known: Collection[str]) -> Iterator[Problem]:
    for place, name in enumerate(names):
        if name not in known:
            yield _dangling((*at, place), name, "environment", known)


def _dangling(at: Loc, name: str, what: str, known: Iterable[str]) -> Problem:
    near = hint(name, known)
    return Problem(at, f"{shown(at)}: unknown {what} '{name}': {near}available: {some(known)}")


def find_bad_databases(spec: Spec) -> Iterator[Problem]:
    """Keys of local databases, and names that can't be those of Services."""
    for index, each in enumerate(spec.databases):
        at: Loc = ("spec", "databases", index)
        if each.image and each.provider != "local":
            yield Problem((*at, "image"), f"{shown(at)}: 'image' is valid for provider local only")
        if not each.name[0].isalpha() and any(
            runs_in_cluster(each, environment) for environment in spec.environments
        ):
            yield Problem(
                (*at, "name"),
                f"{shown(at)}: the name of a local database must begin with a letter, because "
                "its Service has the same name",
            )


def find_bad_clusters(spec: Spec) -> Iterator[Problem]:
    """Keys of clusters that belong to another provider."""
    yield from _bad_cluster(spec.core, ("spec", "core"))
    for place, name in enumerate(spec.core.adopt):
        if name in spec.core.adopt[:place]:
            yield Problem(
                ("spec", "core", "adopt", place), f"duplicate component '{name}' in adopt"
            )
    for index, each in enumerate(spec.environments):
        yield from _bad_cluster(each.cluster, ("spec", "environments", index, "cluster"))


def _bad_cluster(cluster: AppCluster | CoreCluster, at: Loc) -> Iterator[Problem]:
    info = PROVIDERS[cluster.provider]
    if info.adopts and not cluster.context:
        yield Problem(at, f"{shown(at)} requires the key 'context' (a context of your kubeconfig)")
    for key in type(cluster).model_fields.keys() - _EVERYWHERE:
        if getattr(cluster, key) and key not in info.keys:
            providers = [name for name, each in PROVIDERS.items() if key in each.keys]
            yield Problem(
                (*at, key),
                f"{shown(at)}: '{key}' is valid for provider {' or '.join(providers)} only",
            )
    zones = getattr(cluster, "zones", None)
    if zones and zones[0] == zones[1]:
        yield Problem((*at, "zones"), f"{shown(at)}: 'zones' requires two different zones")
    if info.adopts and cluster.version:
        yield Problem(
            (*at, "version"), f"{shown(at)}: 'version' can't be set for an existing cluster"
        )


def find_bad_credentials(spec: Spec) -> Iterator[Problem]:
    """Credentials with several sources, misspelled names, and clouds' credentials used for git."""
    used = {spec.git.auth, spec.git.read_auth}
    used |= {each.auth for each in spec.apps}
    used |= {each.chart.auth for each in spec.apps if each.chart}
    for name, source in spec.credentials:
        at: Loc = ("spec", "credentials", name)
        if source is not None and len(source.model_fields_set - {"project"}) > 1:
            yield Problem(
                at, f"{shown(at)} requires exactly one of the keys file, env, onepassword"
            )
        if name not in (*CLOUDS, *used) and (near := nearest(name, CLOUDS)):
            # Other unused credentials may be for a future app (`ucp app add --auth`).
            words = f"did you mean '{near}'? it is not used"
            yield Problem(at, f"{shown(at)}: {words}", on_key=True)
    for index, app in enumerate(spec.apps):
        for at, named in (
            (("spec", "apps", index, "auth"), app.auth),
            (("spec", "apps", index, "chart", "auth"), app.chart.auth if app.chart else None),
        ):
            if named in CLOUDS:
                yield Problem(
                    at, f"{shown(at)}: '{named}' is the credential of a cloud; use a separate one"
                )
    for key, named in (("auth", spec.git.auth), ("readAuth", spec.git.read_auth)):
        if named is not None:
            yield from _bad_git_credential(spec, ("spec", "git", key), named)


def find_bad_checks(checks: Checks) -> Iterator[Problem]:
    """Findings that can't be ignored, and entries that would ignore a rule everywhere."""
    for place, entry in enumerate(checks.ignore):
        at: Loc = ("spec", "checks", "ignore", place)
        rule = RULES[entry.rule]
        if rule.ignorable == "never":
            yield Problem(
                (*at, "rule"), f"{shown(at)}: {rule.id} can't be ignored: {rule.fix} ({rule.page})"
            )
        if not entry.app and not entry.file:
            yield Problem(at, f"{shown(at)} requires the key 'app' or 'file'")


def _bad_git_credential(spec: Spec, at: Loc, named: str) -> Iterator[Problem]:
    git = spec.git
    if named in CLOUDS:
        yield Problem(
            at, f"{shown(at)}: '{named}' is the credential of a cloud; use a separate one for git"
        )
    if git.provider == "local":
        yield Problem(at, f"{shown(at)}: local repositories do not use credentials")
    for key, url in (("core", git.core), ("apps", git.apps)):
        if url and not url.lower().startswith(("http://", "https://")):
            words = f"{url} is not an http(s) URL: remove the key, SSH uses its own keys"
            yield Problem(at, f"{shown(at)}: spec.git.{key} {words}")

"""Seeds: CRDs with which new core clusters are created, kept from a start with the same pins.

CRDs that exist when the API server starts cost half the CPU of those that are applied later. The
manifests in the repository are authoritative: if the seed differs, they are applied.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from k8s_ucp import yaml_io
from k8s_ucp.cluster_provider import Seed, SeedTaker
from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import programs
from k8s_ucp.clusters.embedded.cached import default_objects, definition
from k8s_ucp.clusters.embedded.cached.default_objects import PROGRAMS
from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.manifests import Manifest, digest, written
from k8s_ucp.compositions.composite_kinds import composite_kind
from k8s_ucp.context import StartContext
from k8s_ucp.errors import ProgramMissing, UcpError
from k8s_ucp.git.repository import RENDERED
from k8s_ucp.gitops.render.repositories import templates_folder
from k8s_ucp.kube import FIELD_MANAGER
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import ProgramSource
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import cache_folder

TEMPLATES = ("platform/reconciler", "bootstrap")
"""Our own CRDs, and the Applications whose tracking ids they get."""
ENGINES = (argocd.NAME, crossplane.NAME)
TOOLS = ("kubernetes", "etcd", "kwok", *ENGINES)
"""Tools on which a seed depends."""
DEFINITION = "/definition.yaml"
"""Suffix of files below api/ that define the platform's own kinds."""
_MANAGERS = {FIELD_MANAGER, "kube-apiserver"}


def find_seed(context: StartContext) -> Seed | None:
    """The seed for a core cluster that doesn't exist yet; None if there is none."""
    if not context.provider.info.takes_seed:
        return None
    if context.topology.core_cluster in context.provider.names():
        return None
    return seeds.find(cache_folder(), _key_of(context))


def is_seeded(context: StartContext, crds: Sequence[Manifest]) -> bool:
    """Whether the core cluster was created with exactly these CRDs."""
    if not context.provider.info.takes_seed:
        return False
    provider = cast(SeedTaker, context.provider)
    return provider.seeded_with(context.topology.core_cluster) == digest(crds)


def keep_seed(context: StartContext, crds: Sequence[Manifest]) -> None:
    """Keep the CRDs that were just applied, before anyone else writes to the core.

    Not if people changed them in the repository, since other topologies would get them.
    """
    if not context.provider.info.takes_seed or _edited(context, crds):
        return
    provider = cast(SeedTaker, context.provider)
    with contextlib.suppress(UcpError, OSError):  # A missing seed only makes later starts slower.
        stored = provider.stored_crds(context.topology.core_cluster)
        if settled(stored, {each.name for each in crds}):
            seeds.keep(cache_folder(), _key_of(context), Seed(digest(crds), stored))


def platform_crds(context: StartContext) -> list[Manifest]:
    """The platform's own CRDs, as Crossplane generates them from the definitions in the repository.

    A CRD that is added once Argo CD runs makes it read the whole API again, three times.
    Definitions that people changed are left out, since only Crossplane can validate them.
    """
    core = context.published.core
    rendered, current = core.clone.read(RENDERED, "api"), core.read("api")
    same = {path: text for path, text in current.items() if rendered.get(path) == text}
    return _crds_of(same)


def _crds_of(files: Mapping[str, bytes]) -> list[Manifest]:
    definitions = {each: text for each, text in files.items() if each.endswith(DEFINITION)}
    return [
        written(composite_kind(yaml_io.load(text.decode())), path)
        for path, text in definitions.items()
    ]


def prune_seeds(cache: Path) -> list[str]:
    """Delete seeds that no start with the installed programs needs; returns their files."""
    needed = set()
    for toolbox in _toolboxes(cache):
        needed |= {key(toolbox, simulated=simulated) for simulated in (False, True)}
        needed.add(default_objects.key({each: toolbox.path(each) for each in PROGRAMS}))
        with contextlib.suppress(ProgramMissing):
            version = f"v{toolbox.version('kubernetes')}"
            needed.add(definition.key_of_all(programs.find(toolbox), version, Parameters.gogc))
    return seeds.prune(cache, needed)


def _toolboxes(cache: Path) -> Iterator[Toolbox]:
    """Toolboxes that a topology could use now, by its `tools.source`."""
    for source in ProgramSource:
        with contextlib.suppress(UcpError):
            yield Installer(cache, lambda _: None, source=source).find(TOOLS)


def settled(stored: Mapping[str, str], names: Collection[str]) -> bool:
    """Whether a datastore has exactly these CRDs, served, and written only by us."""
    return stored.keys() == set(names) and all(
        _is_settled(json.loads(text)) for text in stored.values()
    )


def _is_settled(crd: Mapping[str, Any]) -> bool:
    metadata = crd["metadata"]
    conditions = {
        each["type"]: each["status"] for each in crd.get("status", {}).get("conditions") or ()
    }
    return (
        conditions.get("Established") == "True"
        and {each["manager"] for each in metadata["managedFields"]} <= _MANAGERS
        and not metadata.keys() & {"deletionTimestamp", "ownerReferences", "finalizers"}
    )


def _edited(context: StartContext, crds: Sequence[Manifest]) -> bool:
    core = context.published.core
    rendered, current = core.clone.read(RENDERED, "platform", "api"), core.read("platform", "api")
    files = current.keys() & {each.source for each in crds}
    # Changed definitions are not among `crds`.
    files |= {each for each in rendered if each.endswith(DEFINITION)}
    return any(current.get(each) != rendered.get(each) for each in files)


def _key_of(context: StartContext) -> str:
    return key(context.toolbox, simulated=bool(context.topology.spec.clouds.simulated))


def key(toolbox: Toolbox, *, simulated: bool) -> str:
    """Digest of everything that determines the CRDs, including the programs that store them.

    Programs and engines are identified by the names of their entries in the cache, which never
    change.
    """
    programs = [toolbox.path(each).parent.parent.name for each in PROGRAMS]
    engines = [toolbox.module(each).parent.name for each in ENGINES]
    folder = templates_folder() / "core"
    templates = (
        path.read_bytes()
        for each in TEMPLATES
        for path in sorted((folder / each).rglob("*"))
        if path.is_file()
    )
    parts = (
        *map(str.encode, (*programs, *engines)),
        *templates,
        _simulated() if simulated else b"",
    )
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:32]


def _simulated() -> bytes:
    """The CRDs of simulated clouds, and those of the platform that are composed there."""
    from k8s_ucp.aws import crds

    folder = templates_folder() / "core"
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "api").rglob(f"*{DEFINITION}"))
    }
    platform = [each.text for each in _crds_of(files)]
    return json.dumps([crds.crds(), platform], sort_keys=True).encode()

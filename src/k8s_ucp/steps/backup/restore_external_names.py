"""Restores the external names of existing cloud resources to a new core cluster.

This precedes the clouds' credentials: until then no provider can create anything, such as a second
network because it doesn't know the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.gitops.render.values.databases import PARTS
from k8s_ucp.kube import APPLICATION, Object
from k8s_ucp.names import ARGOCD_NAMESPACE, GROUP
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import key_for
from k8s_ucp.reconciler.backup_content import EXTERNAL_NAMES, parse
from k8s_ucp.steps.backup.adopt_resources import begin_observing, has_account, has_begun

SECONDS = 600.0
"""The providers install the CRDs, and their packages may have to be pulled."""
PAUSE = 0.5
APPLICATIONS = ("clusters", "databases")
"""Applications that declare managed resources."""


def _preview_names(context: StartContext) -> Iterator[PlannedChange]:
    if context.planned is None or (
        context.core_responds() and EXTERNAL_NAMES in context.core_state.restored()
    ):
        return
    for name, external in sorted(_backed_up_names(context).items()):
        yield PlannedChange("keep", name, f"the cloud has it as {external}: adopted, not created")


@step("Restore names of existing cloud resources", preview=_preview_names)
def restore_external_names(context: StartContext, report: Report) -> None:
    """From here on, named resources may only be observed, until they are compared."""
    state = context.core_state
    if EXTERNAL_NAMES in state.restored():
        return
    names = _backed_up_names(context)
    if not names or (has_account(context) and not has_begun(context)):
        # Either there are none, or this core created them before it recorded restored names.
        state.note_restored("restore-external-names", EXTERNAL_NAMES)
        return
    folder = f"bootstrap/{context.topology.spec.core.provider}"
    files = context.published.core.clone.listing(context.published.core.commit, folder)
    wanted = [each for each in APPLICATIONS if f"{folder}/{each}.yaml" in files]
    wanted += _claims_of_teams(context, names)

    def pending() -> str:
        missing = state.restore_external_names(names)
        items = context.kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        return "; ".join(not_yet(missing, wanted, items))

    context.wait(
        "restored managed resources",
        pending,
        report,
        seconds=SECONDS,
        pause=PAUSE,
        next="see `ucp status` and `ucp open argocd`",
    )
    begin_observing(context, wanted)


def _claims_of_teams(context: StartContext, names: Iterable[str]) -> list[str]:
    """Applications of teams that have resources in a cloud."""
    used = {each.split("/")[1] for each in names}
    spaces = [each.namespace for each in context.topology.spec.teams]
    return [f"{each}.claims" for each in spaces if each in used]


def _backed_up_names(context: StartContext) -> Mapping[str, str]:
    core = context.published.core
    sealed = BackupFile(core.clone, context.topology.spec.git.branch).sealed(core.commit)
    if sealed is None:
        return {}
    key = key_for(context.workspace.backup_key, lambda: True)
    return parse(key.open(sealed), context.topology.name).external_names


def not_yet(missing: Collection[str], wanted: Iterable[str], items: Sequence[Object]) -> list[str]:
    """What to wait for, in words. missing: resources that don't exist; items: Applications.

    Resources that the repository no longer declares are not waited for. Composed resources,
    identified by their composite and part, exist once Crossplane has composed them.
    """
    by_name = {each["metadata"]["name"]: each for each in items}
    unread = [each for each in wanted if not _compared(by_name.get(each))]
    if unread:
        return [f"{each}: not compared with git yet" for each in unread]
    resources = [
        each
        for name in wanted
        for each in (by_name[name].get("status") or {}).get("resources") or []
    ]
    declared = {
        "{}.{}/{}/{}".format(*(each.get(key, "") for key in ("kind", "group", "namespace", "name")))
        for each in resources
    }
    composed = {
        f"{resource.get('namespace', '')}/{resource['name']}-{part}"
        for resource in resources
        if resource.get("group") == GROUP
        for part in PARTS.get(resource["kind"], ())
    }
    late = [each for each in missing if each in declared or each.partition("/")[2] in composed]
    return [f"{each}: not created yet" for each in sorted(late)]


def _compared(application: Object | None) -> bool:
    sync = (((application or {}).get("status") or {}).get("sync") or {}).get("status")
    return sync in ("Synced", "OutOfSync")

"""The steps of a rehearsal. They only change the throwaway copy.

It has its own keys and ports. Argo CD, Crossplane, the reconciler and the simulated cloud belong to
the real core alone, whose objects are only read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import cast

from k8s_ucp import process
from k8s_ucp.cluster_provider import CopyingProvider
from k8s_ucp.clusters.local import COPY, remove_copies
from k8s_ucp.components.manifests import Manifest, refused, wait_served
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, Step
from k8s_ucp.engine.waiting import Cancelled
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.kube import CRD, Kube
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.preparation.tools_and_images import find_entries
from k8s_ucp.steps.upgrading.checks import kubernetes_findings, newer_kinds
from k8s_ucp.steps.upgrading.health import STABLE_SECONDS, StabilityTimer
from k8s_ucp.steps.upgrading.parts import (
    CLUSTER_TOOLS,
    CORE,
    UpgradePart,
    chosen,
    moves,
    parts,
    provider_of,
)
from k8s_ucp.steps.upgrading.rehearsal.comparison import compare
from k8s_ucp.steps.upgrading.rehearsal.inventory import (
    ClusterInventory,
    read_inventory,
    read_versions,
    served_versions,
)
from k8s_ucp.steps.upgrading.rehearsal.report import Findings
from k8s_ucp.steps.upgrading.upgrade import CLUSTER_SECONDS, losses
from k8s_ucp.tools.toolbox import Toolbox

COPY_SECONDS = 180.0
SETTLE_SECONDS = 60.0
"""Timeout until the copy's programs are healthy, and its API server serves all kinds."""


@dataclass
class Rehearsal:
    """One rehearsal, from the copy to the findings."""

    findings: Findings = field(default_factory=Findings)
    before: ClusterInventory | None = None
    renewed: set[str] = field(default_factory=set)
    """Names of CRDs that were applied to the copy."""
    began: float = field(default_factory=time.monotonic)

    def steps(self) -> list[Step[StartContext]]:
        """The steps, in order."""
        found = (
            ("copy-core", "Copy the core cluster", self._copy),
            ("record-copy", "Record what the copy holds", self._record),
            ("upgrade-copy", "Upgrade the control plane of the copy", self._upgrade),
            ("renew-kinds", "Apply the newer kinds to the copy", self._renew),
            ("compare-copy", "Compare the copy with what it was", self._compare),
        )
        return [Step(id, title, run) for id, title, run in found]

    def _copy(self, context: StartContext, report: Report) -> None:
        remove_copy(context)
        original, folder = _core(context), context.state.copies
        report("objects, Secrets among them, into a private folder")
        _copying_provider(context, original, _running(context, original)).copy(
            original.cluster, folder, COPY, timeout=COPY_SECONDS
        )
        self._await_health(context, report, seconds=SETTLE_SECONDS, stable=0.0)

    def _record(self, context: StartContext, report: Report) -> None:
        for part in chosen(context):
            for each in moves(context, part):
                move = {"part": part.name, "tool": each.tool}
                self.findings.moves.append({**move, "from": each.before, "to": each.after})
            self.findings.one_way += losses(context, part)
        kube = _copy_of(context)
        try:
            await_served(context, kube, report)
            self.before = read_inventory(kube)
        finally:
            kube.close()
        self.findings.counts = self.before.counts
        report(f"{sum(self.before.counts.values())} objects")

    def _upgrade(self, context: StartContext, report: Report) -> None:
        part = next((each for each in chosen(context) if each.name == CORE), None)
        moved = moves(context, part) if part else []
        if part is None or not moved:
            return
        report(", ".join(map(str, moved)))
        after = next((each.after for each in moved if each.tool == "kubernetes"), None)
        if after:
            uses = kubernetes_findings(context, part)
            self.findings.in_use = [each.name for each in uses if each.is_removed_in(after)]
            self.findings.warnings = [
                f"{each.name} is deprecated, and in use on {part.cluster}"
                for each in uses
                if not each.is_removed_in(after)
            ]
        toolbox = _running(context, part).with_tools(CLUSTER_TOOLS, context.upgrade.pins)
        newer = _copying_provider(context, part, toolbox).elsewhere(context.state.copies)
        try:
            newer.upgrade(COPY, timeout=min(CLUSTER_SECONDS, context.upgrade.patience))
            seconds = min(context.upgrade.patience, CLUSTER_SECONDS)
            self._await_health(context, report, seconds=seconds, stable=STABLE_SECONDS)
        except Cancelled:
            raise
        except UcpError as error:
            self.findings.unhealthy = error.message

    def _renew(self, context: StartContext, report: Report) -> None:
        if self.findings.unhealthy:
            return
        kube = _copy_of(context)
        try:
            for part in chosen(context):
                if not part.cluster and moves(context, part):
                    report(part.name)
                    self._apply(context, kube, newer_kinds(context, part))
        finally:
            kube.close()

    def _apply(self, context: StartContext, kube: Kube, kinds: list[Manifest]) -> None:
        taken = []
        for each in kinds:
            context.cancel.check()
            if against := refused(kube, [each], dry_run=False):
                self.findings.refused += against
            else:
                taken.append(each)
        self.renewed.update(each.name for each in taken)
        self._keep_warnings(kube)
        try:
            wait_served(kube, taken, timeout=SETTLE_SECONDS)
        except DeadlineExceeded as error:
            self.findings.refused.append(error.message)

    def _compare(self, context: StartContext, report: Report) -> None:
        found = self.findings
        if self.before is not None and not found.unhealthy:
            kube = _copy_of(context)
            try:
                _settle(context, kube, report)
                after = read_inventory(kube, read_versions(self.before))
            finally:
                kube.close()
            found.difference = compare(self.before, after, self.renewed)
            found.stored = [
                f"{name}: {', '.join(versions)}"
                for name, versions in sorted(after.stored.items())
                if versions != self.before.stored.get(name, versions)
            ]
        found.peak_megabytes = _elsewhere(context).peak_megabytes(COPY)
        found.seconds = time.monotonic() - self.began

    def _keep_warnings(self, kube: Kube) -> None:
        self.findings.warnings = sorted({*self.findings.warnings, *kube.warnings})

    def _await_health(
        self, context: StartContext, report: Report, *, seconds: float, stable: float
    ) -> None:
        """Wait until all programs of the copy are healthy, and stable.

        On a slow machine a controller may end itself. The copy has no process monitor, so this
        starts it again. Raises DeadlineExceeded, UcpError.
        """
        timer, provider = StabilityTimer(), _elsewhere(context)

        def pending() -> str:
            states = provider.programs(COPY)
            if wrong := [
                f"{name}: {each.message}" for name, each in states.items() if each.message
            ]:
                timer.reset()
                if not all(each.run for each in states.values()):
                    provider.start(COPY)
                return "; ".join(wrong)
            runs = {name: each.run for name, each in states.items()}
            lasted = timer.seconds(runs, time.monotonic())
            return "" if lasted >= stable else f"healthy for {lasted:.0f} s"

        context.wait("a healthy copy of the core", pending, report, seconds=seconds, pause=0.5)


def await_served(context: StartContext, kube: Kube, report: Report) -> None:
    """Wait until the API server serves the kinds of all its CRDs. Raises DeadlineExceeded."""

    def pending() -> str:
        missing = _unserved(kube)
        return f"not served yet: {', '.join(missing[:3])}" if missing else ""

    what = "kinds of the copy to be served"
    context.wait(what, pending, report, seconds=SETTLE_SECONDS, pause=0.5)


def _settle(context: StartContext, kube: Kube, report: Report) -> None:
    """Like await_served; what is still not served is shown by the comparison."""
    try:
        await_served(context, kube, report)
    except DeadlineExceeded as error:
        report(error.message)


def _unserved(kube: Kube) -> list[str]:
    served = served_versions(kube)
    return [
        name
        for each in kube.list_all(CRD)
        if (name := each["metadata"]["name"])
        and {one["name"] for one in each["spec"]["versions"] if one["served"]}
        - set(served.get(name, ()))
    ]


def check_copyable(context: StartContext) -> None:
    """Check that the core can be copied, and that there is enough memory. Raises UcpError."""
    provider = context.topology.spec.core.provider
    if not PROVIDERS[provider].can_copy:
        can = " or ".join(name for name, info in PROVIDERS.items() if info.can_copy)
        raise UcpError(
            f"{context.topology.core_cluster} can't be copied: --rehearse needs a core of the "
            f"provider {can}, and this one is of {provider}",
            next=f"ucp {'start' if context.in_pods else 'upgrade'} --plan",
        )
    needed, free = PROVIDERS[provider].megabytes, process.available_memory() // 10**6
    if free < needed:
        raise UcpError(
            f"a copy of {context.topology.core_cluster} needs about {needed} MB of memory, but "
            f"only {free} MB are available",
            next="close programs, then: ucp upgrade --rehearse",
        )


def remove_copy(context: StartContext) -> None:
    """Remove processes, ports and folder of a rehearsal. Raises UcpError."""
    remove_copies(context.workspace, context.topology)


def _core(context: StartContext) -> UpgradePart:
    return next(each for each in parts(context.topology) if each.name == CORE)


def _running(context: StartContext, part: UpgradePart) -> Toolbox:
    """A toolbox with the programs that the real core runs."""
    entries = provider_of(context, part).entries(part.cluster)
    return context.toolbox.with_tools(CLUSTER_TOOLS, find_entries(context, entries))


def _copying_provider(
    context: StartContext, part: UpgradePart, toolbox: Toolbox
) -> CopyingProvider:
    return cast(CopyingProvider, provider_of(context, part, toolbox))


def _elsewhere(context: StartContext) -> CopyingProvider:
    """The provider for reading the copy."""
    found = cast(CopyingProvider, provider_of(context, _core(context)))
    return found.elsewhere(context.state.copies)


def _copy_of(context: StartContext) -> Kube:
    return Kube(_elsewhere(context).kubeconfig(COPY))

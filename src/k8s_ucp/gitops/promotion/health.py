"""The health gate: waits until Argo CD has reported an environment healthy for long enough."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.gates import ApplicationHealth, classify
from k8s_ucp.names import ARGOCD_NAMESPACE

if TYPE_CHECKING:
    from k8s_ucp.kube import Kube

Reader = Callable[[str], Mapping[str, Any] | None]
"""Returns an Application by name; None if it doesn't exist."""


_MISSING = ApplicationHealth("shut", "the Application does not exist")


@dataclass
class HealthGate:
    """Checked for each decision. After it was open once, later checks don't soak again.

    soak: seconds for which the environment must have been healthy. patience: additional seconds for
    becoming healthy, used only with a soak: without one, the gate checks once.
    """

    read: Reader
    soak: float = 0.0
    patience: float = 600.0
    waits: bool = True
    """False: report what a soak still lacks instead of waiting for it."""
    pause: float = 2.0
    report_pause: float = 60.0
    """Seconds until an unchanged state is reported again: CI keeps every line."""
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    report: Callable[[str], None] = lambda _: None
    _passed: set[str] = field(default_factory=set)

    def hold_up(self, decision: Decision) -> Decision:
        """The decision, or a `gated` one. Raises UsageError if no environment is required."""
        if decision.status != "promoted":
            return decision
        if not decision.required:
            raise UsageError(
                f"--require-healthy: {decision.note.app} has no environment before "
                f"{decision.note.env} by promotesFrom",
                next="name the environment that must be healthy: --require-env ENV",
            )
        for env, pins in decision.required:
            name = f"{decision.note.app}-{env}"
            found = self._wait(name, pins)
            if found.state != "open":
                but, advice = f"is: {found.reason}", f"check {name} in Argo CD, then"
                if found is _MISSING:
                    but, advice = found.reason, f"where {env} is stopped: ucp recreate --env {env};"
                return replace(
                    decision,
                    status="gated",
                    writes={},
                    reason=f"{name} must be Synced and Healthy, but {but}",
                    next=f"{advice} run the command again",
                )
        return decision

    def _wait(self, name: str, pins: Mapping[str, Pin]) -> ApplicationHealth:
        key = repr((name, sorted((image, str(pin)) for image, pin in pins.items())))
        soak = 0.0 if key in self._passed else self.soak
        start = self.clock()
        well_since: float | None = None
        reported, reported_at = ("", ""), start
        while True:
            found = self._look(name, pins)
            now, reason = self.clock(), found.reason
            if found.state == "open":
                if well_since is None:
                    well_since = min(now, _seconds(found.since) or now)
                if now - well_since >= soak:
                    self._passed.add(key)
                    return found
                left = soak - (now - well_since)
                found = replace(
                    found,
                    state="waiting",
                    reason=f"Synced and Healthy, {left:.0f} s of soak time left",
                )
            else:
                well_since = None
            waits = soak and self.waits
            if found.state == "shut" or not waits or now - start > soak + self.patience:
                return found
            if (found.state, reason) != reported or now - reported_at >= self.report_pause:
                self.report(f"{name}: {found.reason}")
                reported, reported_at = (found.state, reason), now
            self.sleep(self.pause)

    def _look(self, name: str, pins: Mapping[str, Pin]) -> ApplicationHealth:
        application = self.read(name)
        if application is None:
            return _MISSING
        return classify(application, pins)


def application_reader(kubeconfig: Path) -> Reader:
    """Reads Applications; requires only the permission to get them."""
    from k8s_ucp.kube import APPLICATION, Kube, KubeError

    kube: Kube = Kube.from_file(kubeconfig)

    def read(name: str) -> Mapping[str, Any] | None:
        try:
            return kube.find(APPLICATION, name, ARGOCD_NAMESPACE)
        except KubeError as error:
            raise UcpError(
                f"failed to get the Application {name}: {error.message}",
                next=f"check the cluster in {kubeconfig} and the right to get Applications",
            ) from error

    return read


def find_kubeconfig(candidates: Mapping[str, Path | None]) -> Path:
    """The first kubeconfig that exists. Raises UsageError naming all candidates."""
    for path in candidates.values():
        if path is not None and path.is_file():
            return path
    raise UsageError(
        "--require-healthy needs access to the core cluster, but found neither "
        + " nor ".join(candidates),
        next=(
            "run the command in the workspace, or set KUBECONFIG to a kubeconfig with the "
            "right to get Applications"
        ),
    )


def _seconds(moment: datetime.datetime | None) -> float | None:
    if moment is None:
        return None
    return moment.timestamp() if moment.tzinfo else moment.replace(tzinfo=datetime.UTC).timestamp()

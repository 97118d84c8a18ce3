"""Repairs an interrupted exchange of a cluster's programs before any of them is started.

Every start of a cluster does this first, under the cluster's lock: no control plane runs with
programs of two versions, and no etcd while its data is being restored. Imports little, because the
process monitor uses it.
"""

from __future__ import annotations

from k8s_ucp.clusters.embedded import kwokctl, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import end_all
from k8s_ucp.clusters.embedded.programs import ExchangePhase

CLOSING_SECONDS = 5.0
"""For etcd to close its data before it is killed; a killed etcd loses nothing either."""


def repair(folder: ClusterFolder) -> None:
    """Undo an exchange that was interrupted before any newer program ran; complete a rollback.

    An exchange that came further is left to `ucp upgrade`. Raises UcpError.
    """
    before = programs.noted(folder)
    if before is None or before.phase is ExchangePhase.EXCHANGED:
        return
    if before.phase is ExchangePhase.RETURNING:
        end_all(folder, grace=CLOSING_SECONDS)
        programs.put_data_back(folder)
    programs.exchange(folder, before.paths)
    note_version(folder, before.newer, before.version)
    programs.forget_before(folder)


def note_version(folder: ClusterFolder, before: str, after: str) -> None:
    """Record the Kubernetes version that a cluster runs from now on; both with "v"."""
    kwokctl.set_version(folder, before, after)
    record = folder.record()
    if record and record.version != after:
        folder.write_record(Record(after, record.ports))

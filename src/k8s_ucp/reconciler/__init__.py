"""The reconciler: creates app clusters, registers them with Argo CD, mirrors Secrets to them.

Decisions are pure functions from observed state to actions; effects are thin and idempotent.
The path of a cluster: LocalCluster -> kubeconfig Secret (local_clusters/) -> Argo CD cluster Secret
(registration/). The path of a mirrored Secret, in mirrors/: Syncer and source -> desired copies
(index.py) -> what one copy needs (rules.py) -> the copy (copy_sync.py, writes.py), ordered by
controller.py and app_clusters.py. State that only the core cluster has is written to the core
repository, encrypted (backup/).
"""

"""The reconciler: makes app clusters, registers them with Argo CD, mirrors Secrets to them.

Decisions are pure functions from what is seen to what is to be done; effects are thin and
repeatable. Which road an object takes: LocalCluster -> kubeconfig Secret (local_clusters.py) ->
Argo CD cluster Secret (registration.py). Which road a mirrored Secret takes: Syncer and source ->
what is wanted where (syncer_plan.py) -> what one copy needs (syncer_rules.py) -> the copy
(mirror_copies.py, mirror_writes.py); syncer.py and mirrors.py see to order.
"""

"""The reconciler: makes app clusters, registers them with Argo CD, mirrors Secrets to them.

Decisions are pure functions from what is seen to what is to be done; effects are thin and
repeatable. Which road an object takes: LocalCluster -> kubeconfig Secret (local_clusters/) ->
Argo CD cluster Secret (registration/). Which road a mirrored Secret takes, in mirrors/: Syncer and
source -> what is wanted where (plan.py) -> what one copy needs (rules.py) -> the copy
(copy_sync.py, writes.py); controller.py and app_clusters.py see to order. What only the core knows
goes into the core repository, encrypted (backup/).
"""

"""The reconciler: makes app clusters that a commit declares, and registers them with Argo CD.

Decisions are pure functions from what is seen to what is to be done; effects are thin and
repeatable. Which road an object takes: LocalCluster -> kubeconfig Secret (local_clusters.py) ->
Argo CD cluster Secret (registration.py).
"""

"""Informers of the core cluster, one per kind and namespace, shared by all controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, LOCAL_CLUSTER, SECRET, Kube, Object
from k8s_ucp.reconciler.access.sources import keep_source
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.reconciler.runtime.settings import Settings


@dataclass(frozen=True)
class SharedInformers:
    """The informers, not started yet."""

    local_clusters: Informer
    cluster_secrets: Informer
    """All of Argo CD's, also those of people, which may occupy a name or an environment."""
    environments: Informer
    sources: Mapping[str, Informer]
    """Kubeconfig Secrets, by namespace."""

    @classmethod
    def of(cls, kube: Kube, settings: Settings, log: Log, metrics: Metrics) -> SharedInformers:
        def watch(spec: WatchSpec) -> Informer:
            return Informer(kube, spec, log, metrics=metrics, seconds=settings.watch_seconds)

        keep = partial(keep_source, by_name=settings.sources_by_name)
        namespaces = dict.fromkeys((*settings.source_namespaces, names.CLUSTERS_NAMESPACE))
        return cls(
            local_clusters=watch(WatchSpec(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)),
            cluster_secrets=watch(
                WatchSpec(SECRET, names.ARGOCD_NAMESPACE, labels=f"{names.SECRET_TYPE}=cluster")
            ),
            environments=watch(
                WatchSpec(
                    CONFIG_MAP,
                    names.CLUSTERS_NAMESPACE,
                    fields=f"metadata.name={names.ENVIRONMENTS}",
                )
            ),
            sources={each: watch(WatchSpec(SECRET, each, keep=keep)) for each in namespaces},
        )

    def __iter__(self) -> Iterator[Informer]:
        yield from (self.local_clusters, self.cluster_secrets, self.environments)
        yield from self.sources.values()

    def source(self, key: str) -> Object | None:
        """The kubeconfig Secret `<namespace>/<name>`."""
        watch = self.sources.get(key.partition("/")[0])
        return watch.store.get(key) if watch else None

    def environment_names(self) -> frozenset[str]:
        """The environments that may be registered."""
        found = self.environments.store.get(f"{names.CLUSTERS_NAMESPACE}/{names.ENVIRONMENTS}")
        return frozenset((found or {}).get("data") or {})

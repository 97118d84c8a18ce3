"""Forms in which users have their apps, written for the tests."""

from tests.e2e.corpus.charts import CHARTS
from tests.e2e.corpus.kustomizations import KUSTOMIZATIONS
from tests.e2e.corpus.manifests import MANIFESTS
from tests.e2e.corpus.workloads import WORKLOADS

SHAPES = (*KUSTOMIZATIONS, *MANIFESTS, *WORKLOADS, *CHARTS)

"""Go templates of ApplicationSets, filled by helm: a chart that fills them, and its output. Pure.

helm has Argo CD's template language and its functions, except for `normalize`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from k8s_ucp.gitops.imports.templates import with_actions
from k8s_ucp.gitops.manifests.yaml_text import documents

_NORMALIZE = re.compile(r"(?<![\w.$\"'])normalize\b")
_CHART = "apiVersion: v2\nname: templates\nversion: 0.0.0\n"
_FILLED = """
{{- define "normalize" }}{{ regexReplaceAll "[^-a-z0-9.]" (lower .) "-" | trimAll "-." }}{{ end }}
filled:
{{- range $parameters := .Values.sets }}
{{- range $text := $.Values.texts }}
- {{ tpl $text $parameters | toJson }}
{{- end }}
{{- end }}
"""


def chart_of(texts: Sequence[str], sets: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """A chart that fills each template with each set of parameters."""
    values = {"texts": [with_actions(each, _with_normalize) for each in texts], "sets": sets}
    return {
        "Chart.yaml": _CHART.encode(),
        "values.yaml": json.dumps(values, default=str).encode(),
        "templates/filled.yaml": _FILLED.encode(),
    }


def filled_by(output: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """The filled templates for each set of parameters, from what helm renders of the chart."""
    [content] = documents(output.encode(), "templates")
    found = [str(each) for each in content["filled"]]
    return [tuple(found[start : start + len(texts)]) for start in range(0, len(found), len(texts))]


def _with_normalize(action: str) -> str:
    return "{{" + _NORMALIZE.sub('include "normalize"', action) + "}}"

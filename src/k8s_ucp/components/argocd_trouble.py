"""What Argo CD says is wrong with an Application, in few words. Pure."""

from __future__ import annotations

import re

from k8s_ucp.kube import Object

LENGTH = 300
"""Longest text, in characters."""

# Each of its programs that passed an error on says so.
_PASSED_ON = re.compile(
    r"rpc error: code = \w+ desc = |failed to generate manifest for source \d+ of \d+: "
)


def trouble(application: Object) -> str:
    """The first error, or else the first warning; empty where there is none."""
    status = application.get("status") or {}
    conditions = status.get("conditions") or []
    errors = [each for each in conditions if not str(each.get("type")).endswith("Warning")]
    texts = [str(each.get("message")) for each in (*errors, *conditions)]
    operation = status.get("operationState") or {}
    if operation.get("phase") in ("Failed", "Error"):
        texts.insert(len(errors), str(operation.get("message")))
    return _short(texts[0]) if texts else ""


def _short(text: str) -> str:
    """One line with beginning and end: what was tried, and what came of it."""
    text = " ".join(_PASSED_ON.sub("", text).split())
    if len(text) <= LENGTH:
        return text
    return f"{text[: LENGTH // 3]} ... {text[-2 * LENGTH // 3 :]}"

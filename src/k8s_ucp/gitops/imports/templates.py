"""Template actions in texts, and manifests that a tool has to fill before they are objects. Pure.

Skeletons of Backstage, projects of Kluctl and folders of cookiecutter look like manifests, since
their placeholders are valid strings in YAML; so do templates with names such as <CLUSTER_NAME> or
${CLUSTER_NAME}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.manifests.other_tools import ytt_problem

_METADATA = re.compile(rb"^metadata:[ \t]*(?:#.*)?\r?\n((?:[ \t].*(?:\n|\Z))+)", re.M)
_NAME = re.compile(rb"^[ \t]+name(?:space)?:[ \t]*(?P<value>.*)", re.MULTILINE)
"""Neither can match one text in two ways: with those, a search takes years in some manifests."""
_IN_CAPITALS = re.compile(rb"<[A-Z][A-Z0-9_]+>")
_VARIABLE = re.compile(rb"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""Of envsubst and of Flux, which leaves those that have no value."""
_LONGEST = 60


def actions_in(text: str) -> Iterator[str]:
    """What is between `{{` and the next `}}`."""
    return (text[start + 2 : end - 2] for start, end in _spans(text))


def with_actions(text: str, change: Callable[[str], str]) -> str:
    """The text with each action, including its braces, replaced. change: gets what is between."""
    found, at = [], 0
    for start, end in _spans(text):
        found += [text[at:start], change(text[start + 2 : end - 2])]
        at = end
    return "".join([*found, text[at:]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Not by a pattern, which would look for the end of each of thousands of unfinished actions."""
    start = text.find("{{")
    while start >= 0 and (end := text.find("}}", start + 2)) >= 0:
        yield start, end + 2
        start = text.find("{{", end + 2)


def refuse_templates(files: Mapping[str, bytes], command: str, *, kustomized: bool = False) -> None:
    """Raise NotImportable if a manifest is a template. command: adds the result of filling it.

    kustomized: a kustomization includes them, which may replace the namespace ${NAMESPACE}.
    """
    if problem := ytt_problem(files):
        raise NotImportable(problem.message, problem.next or "")
    for path, content in sorted(files.items()):
        if (value := _placeholder(content, variables=not kustomized)) is not None:
            shown = value.decode(errors="replace").strip()[:_LONGEST]
            raise NotImportable(
                f"{path} is a template: an object in it is called {shown}",
                f"fill it with the tool that it is made for, then: {command} (with the result)",
            )


def _placeholder(content: bytes, *, variables: bool) -> bytes | None:
    """An object's name or namespace that no object of Kubernetes can have.

    Elsewhere, such as in arguments of a workflow, braces may be meant for a program in the cluster.
    """
    patterns = (_IN_CAPITALS, _VARIABLE) if variables else (_IN_CAPITALS,)
    if b"{{" not in content and not any(each.search(content) for each in patterns):
        return None
    for metadata in _METADATA.finditer(content):
        for name in _NAME.finditer(metadata[1]):
            value = name["value"]
            if b"}}" in value.partition(b"{{")[2] or any(each.search(value) for each in patterns):
                return value
    return None


def refuse_unfilled(texts: Mapping[str, str]) -> None:
    """Raise NotImportable if a field of an Application is a placeholder. texts: by its field."""
    for field, text in texts.items():
        encoded = text.encode(errors="replace")
        if match := _IN_CAPITALS.search(encoded) or _VARIABLE.search(encoded):
            raise NotImportable(
                f"it is a template: its {field} has {match[0].decode()}",
                "fill it with the tool that it is made for, then import the result",
            )

"""Providers and clouds are named only in their rows and packages; other code uses their traits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.providers import PROVIDERS
from tests.sources import modules

Look = Callable[[str, ast.AST], Iterator[str]]
NAMES = PROVIDERS.keys() | CLOUDS.keys()

SIMULATED = "aws"
"""The cloud that can be simulated on this machine."""

ROWS = ("providers.py", "clouds.py")

FLAGS = ("cli/lifecycle/start.py", "cli/lifecycle/stop.py")
"""The help of some of their flags names the provider to which it applies."""

SENTENCE = re.compile(
    rf"\b({'|'.join(sorted(NAMES - {'kind', 'existing'}))})\b"
    r"|(?:provider:|--core) (?:kind|existing)\b|\bkind (?:core|cluster|environment|node)s?\b",
    re.IGNORECASE,
)
"""Names in texts for users: `kind` and `existing` are ordinary words, too."""


def allowed(name: str) -> tuple[str, ...]:
    """Where a name may appear: in modules named after it, and in providers on that cloud."""
    own = [
        f"clusters/{each.name}/" for each in PROVIDERS.values() if name in (each.name, each.cloud)
    ]
    cloud = PROVIDERS[name].cloud if name in PROVIDERS else name
    if cloud == SIMULATED:
        own += ["cloud/", f"{cloud}/", f"reconciler/{cloud}/"]
    return (*own, f"reconciler/access/authenticators/{name}.py")


def found(path: str, tree: ast.AST) -> Iterator[str]:
    """`path:line: name` of each provider or cloud named where it is not allowed."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and node.value in NAMES):
            continue
        name = str(node.value)
        if path in ROWS or path.startswith(allowed(name)):
            continue
        if name != "kind" or _is_provider(node, parents[node]):
            yield f"{path}:{node.lineno}: {name}"


def _is_provider(node: ast.expr, parent: ast.AST) -> bool:
    """Whether "kind" is the provider here; it is also a field of every object."""
    beside: list[ast.expr | None] = []
    match parent:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            return True
        case ast.Subscript(value=ast.Name(id=table)):
            return table == "PROVIDERS"
        case ast.keyword(arg=key):
            return key in ("provider", "core")
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            beside = [*elements]
        case ast.Dict(keys=keys):
            beside = [*keys]
    return any(isinstance(each, ast.Constant) and each.value in NAMES - {"kind"} for each in beside)


def named_in_sentences(path: str, tree: ast.AST) -> Iterator[str]:
    """The same for texts that users read; docstrings are not checked."""
    own = {room for name in NAMES for room in allowed(name)} | {*ROWS, *FLAGS}
    if path.startswith((*own, "clusters/")):
        return
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        text = node.value if isinstance(node.value, str) else ""
        if " " in text.strip() and (match := SENTENCE.search(text)):
            yield f"{path}:{node.lineno}: {match[0]}"


@pytest.mark.parametrize("look", [found, named_in_sentences])
def test_no_other_module_names_a_provider_or_a_cloud(look: Look) -> None:
    wrong = [each for path, tree in modules().items() for each in look(path, tree)]
    assert not wrong, "ask PROVIDERS or CLOUDS for a trait"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("use a core with provider: kind", ["provider: kind"]),
        ("an EKS cluster", ["EKS"]),
        ("the existing kind of object", []),
        ("aws", []),
    ],
)
def test_provider_names_are_found_in_sentences(text: str, names: list[str]) -> None:
    tree = ast.parse(f"say({text!r})")
    assert [
        each.partition(": ")[2] for each in named_in_sentences("preflight/machine.py", tree)
    ] == names


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("preflight/versions.py", "if cluster.provider == 'kind': pass", ["kind"]),
        ("preflight/versions.py", "item['kind'], item.get('kind'), {'kind': 'Secret'}", []),
        ("topology/text.py", "TABLE = {'gke': 1, 'kind': 2}", ["gke", "kind"]),
        ("clusters/gke/provider.py", "load('gcp'), PROVIDERS['gke'], PROVIDERS['kind']", ["kind"]),
        ("reconciler/access/authenticators/aws.py", "('aws', 'azure')", ["azure"]),
    ],
)
def test_provider_names_are_told_apart_from_other_words(
    path: str, text: str, names: list[str]
) -> None:
    assert [each.rpartition(" ")[2] for each in found(path, ast.parse(text))] == names

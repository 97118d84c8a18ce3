"""Parses YAML as leniently as kubectl and kustomize do. Pure.

Go's parsers accept a byte order mark, tabs before a comment or at the end of a line, and any line
ending; Python's reject some of these. Only reading is lenient: files are not rewritten.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from k8s_ucp.errors import UsageError

# Possessive (*+): otherwise a line of 100,000 tabs takes minutes, in which no signal is handled.
_TAB_AFTER_VALUE = re.compile(r"(?<=\S) *+\t[ \t]*+(?=#|$)", re.MULTILINE)
_TAB_BEFORE_VALUE = re.compile(r"(?<=[:\-,]) *+\t[ \t]*+(?=\S)")
_BLANK_WITH_TABS = re.compile(r"^ *+\t[ \t]*+$", re.MULTILINE)
_INDENTATION = re.compile(r"^[ \t]*(?:[-?][ \t]+)*", re.MULTILINE)
_DEEPEST = 200
"""As yaml_io.DEEPEST, whose import takes 50 ms, which the push hook can do without."""
_TEMPLATE = "found unhashable key"
"""PyYAML's words for a mapping as a key, which hardly anything but a template contains."""
_CHARACTER = "found character that cannot start any token"
"""PyYAML's words for a tab instead of spaces, among others."""
_STATEMENT = re.compile(r"\{\{[^{}\n]{0,60}\}\}|\{%[^%\n]{0,60}%\}|<%[^%\n]{0,60}%>")
OBJECT = re.compile(rb"^apiVersion:", re.MULTILINE)
"""A line of each object of Kubernetes, which values and files of most tools lack."""
_BINARY = "tag:yaml.org,2002:binary"
_GIT_CRYPT = b"\0GITCRYPT"
ENCRYPTED = "git-crypt encrypts it"
UNLOCK = "git-crypt unlock in its repository, then run the command again"

_WITH_EXPONENT = re.compile(r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)[eE][-+]?(?:\d{1,2}|[12]\d\d)$")
"""Numbers that PyYAML reads as strings; too large ones, such as commit ids, stay strings."""
_OCTAL = re.compile(r"[-+]?0[oO][0-7_]+$")
"""Numbers of YAML 1.2 that PyYAML reads as strings, such as 0o755."""
_BOOLEANS = {"y": True, "n": False}
_LETTERS = frozenset("yYnN")
"""Booleans of YAML 1.1 that PyYAML reads as strings."""
_NO_TEXT_ELSEWHERE = re.compile(
    r"[yYnN]|[-+]?(?:\d[\d_]*+(?:\.[\d_]*+)?|\.\d++)(?:[eE][-+]?\d+)?|0[box][0-9a-fA-F_]+"
)
"""Strings that PyYAML writes unquoted, but others, such as Go, read as booleans or numbers."""


def documents(content: bytes, path: str) -> list[Any]:
    """The YAML documents of a file. Raises UsageError."""
    text = plain_text(content, path)
    try:
        return _load(text)
    except UsageError:
        # This also changes the content of quoted strings and block scalars, so it is the last
        # resort.
        return _load(_without_tabs(text), path)


def first_map(content: bytes, path: str) -> dict[str, Any]:
    """The first document of a file; empty if it isn't a mapping. Raises UsageError."""
    found = documents(content, path)[:1]
    return found[0] if found and isinstance(found[0], dict) else {}


def part(content: Any, key: str) -> Mapping[str, Any]:
    """The mapping at a key; empty if there is none."""
    found = content.get(key) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def maps(content: Any, key: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at a key."""
    found = content.get(key) if isinstance(content, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def plain_text(content: bytes, path: str) -> str:
    """A file's text without a byte order mark and with \n line endings. Raises UsageError."""
    if content.startswith(_GIT_CRYPT):
        raise UsageError(f"{path} is not valid YAML: {ENCRYPTED}", next=UNLOCK)
    marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    encoding = marks.get(content[:2], "utf-8-sig")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path} is not valid YAML: it is not {error.encoding.upper()} (line {line})",
            next=f"correct {path}",
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_tabs(text: str) -> str:
    text = _BLANK_WITH_TABS.sub("", text)
    text = _TAB_AFTER_VALUE.sub(" ", text)
    return _TAB_BEFORE_VALUE.sub(" ", text)


@functools.cache
def loader() -> Any:
    """PyYAML's loader, which reads what Go's parsers read, as Helm and Kubernetes use them.

    It also accepts `=` as a string, which some schemas contain; `1e+06`, as Go prints large
    numbers, and `0o755` as numbers; `12:30` as a string; `y` and `n` as booleans, except as keys,
    which are mostly coordinates; and any `!tag`.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        bool_values = yaml.SafeLoader.bool_values | _BOOLEANS

        def flatten_mapping(self, node: Any) -> None:
            for key, _ in node.value:
                if key.id == "scalar" and key.value in _LETTERS:
                    key.tag = "tag:yaml.org,2002:str"
            super().flatten_mapping(node)

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), list(_LETTERS))
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _WITH_EXPONENT, list("-+.0123456789"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", _OCTAL, list("-+0"))
    Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)
    Loader.add_constructor("tag:yaml.org,2002:int", _number)
    Loader.add_multi_constructor("!", _without_tag)
    return Loader


def _number(loader: Any, node: Any) -> int | str:
    """A number; text for what only PyYAML reads as one, to the base of 60: `12:30`.

    Raises YAMLError also for a number that Python reads but never prints: 0x… is any length.
    """
    import yaml

    if ":" in node.value:
        return str(node.value)
    try:
        found: int = loader.construct_yaml_int(node)
        str(found)
    except ValueError as error:
        why = f"{node.value[:20]!r} is not a valid number"
        raise yaml.constructor.ConstructorError(None, None, why, node.start_mark) from error
    return found


def _without_tag(loader: Any, _: str, node: Any) -> Any:
    if node.id == "scalar":
        return loader.construct_scalar(node)
    if node.id == "sequence":
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


def load_all(text: str) -> list[Any]:
    """The documents of a text. Raises the exceptions listed in `unreadable`."""
    import yaml

    _refuse_deep(text)
    _refuse_multiplied(text)
    return _with_any_anchors(lambda loader: list(yaml.load_all(text, Loader=loader)))


def nodes(text: str) -> list[Any]:
    """The documents as PyYAML nodes, which know their lines; empty for invalid YAML."""
    import yaml

    try:
        _refuse_deep(text)
        found = _with_any_anchors(lambda loader: list(yaml.compose_all(text, Loader=loader)))
    except unreadable():
        return []
    return [each for each in found if each is not None]


def texts(content: bytes, path: str) -> Iterator[str]:
    """All texts in a file, also those that a second key of the same name hides.

    Raises UsageError for invalid YAML.
    """
    text = plain_text(content, path)
    documents(content, path)
    # Go's parsers accept more tabs.
    for node in _each_once(nodes(text) or nodes(_without_tabs(text))):
        if node.id == "scalar":
            yield _decoded(node)


def _each_once(trees: Iterable[Any]) -> Iterator[Any]:
    """All nodes of documents, keys too; one with aliases is not repeated."""
    waiting, seen = [*trees], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.id == "sequence":
            waiting += node.value
        elif node.id == "mapping":
            waiting += [each for pair in node.value for each in pair]


def _decoded(node: Any) -> str:
    if node.tag != _BINARY:
        return str(node.value)
    try:
        return base64.b64decode(node.value).decode("utf-8", "replace")
    except ValueError:
        return ""


def _with_any_anchors(read: Callable[[Any], list[Any]]) -> list[Any]:
    """What `read` returns for a loader; texts may use an anchor's name twice.

    YAML allows that, and Go's parsers do; PyYAML refuses it.
    """
    import yaml

    try:
        return read(loader())
    except yaml.composer.ComposerError as error:
        if not (error.context or "").startswith("found duplicate anchor"):
            raise
    return read(_loader_of_reused_anchors())


@functools.cache
def _loader_of_reused_anchors() -> Any:
    """A slower loader: of a repeated anchor, an alias stands for the nearest one before it."""
    import yaml

    class Loader(yaml.composer.Composer, loader()):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            loader().__init__(self, stream)
            yaml.composer.Composer.__init__(self)

        def compose_node(self, parent: Any, index: Any) -> Any:
            if not self.check_event(yaml.AliasEvent):
                self.anchors.pop(self.peek_event().anchor, None)
            return super().compose_node(parent, index)

    return Loader


def _refuse_deep(text: str) -> None:
    """Raise YAMLError for deeply nested documents.

    PyYAML's C code recurses for each level and crashes the process if there are too many.
    """
    import yaml

    # Upper bound: each indentation character may open a mapping and a list, and brackets inside
    # strings count as well.
    indentation = max(each.end() - each.start() for each in _INDENTATION.finditer(text))
    if 2 * indentation + text.count("[") + text.count("{") < _DEEPEST:
        return
    depth = 0
    for event in yaml.parse(text, Loader=loader()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {_DEEPEST} levels deep")


def multiplied(text: str) -> str:
    """Why nothing should copy the values that a text's aliases stand for; "" if it can."""
    from k8s_ucp.yaml_io import Multiplied

    try:
        _refuse_multiplied(text)
    except Multiplied as error:
        return str(error)
    except unreadable():
        pass
    return ""


def _refuse_multiplied(text: str) -> None:
    """Raises Multiplied, and for invalid YAML YAMLError."""
    if "*" not in text or "&" not in text:
        return
    import yaml

    from k8s_ucp import yaml_io

    if yaml_io.has_aliases(text):
        yaml_io.refuse_multiplied(yaml.parse(text, Loader=loader()))


def repeated_key(content: bytes, path: str) -> str | None:
    """A duplicate key in a mapping, with its line. Parsers differ in which value they use."""
    for node in _each_once(nodes(plain_text(content, path))):
        if node.id != "mapping":
            continue
        seen: set[str] = set()
        for key, _ in node.value:
            if key.id == "scalar" and key.value in seen:
                return f"`{key.value}` in line {key.start_mark.line + 1}"
            seen |= {key.value} if key.id == "scalar" else set()
    return None


def unreadable() -> tuple[type[Exception], ...]:
    """Exceptions for invalid YAML; for some values, PyYAML raises built-in exceptions."""
    import yaml

    return (yaml.YAMLError, ValueError, LookupError, OverflowError, RecursionError)


def dump_all(documents: Iterable[Any], *, for_files: bool = True) -> str:
    """Documents as one text with keys in their order; strings stay strings in every parser.

    for_files: False takes a twentieth of the time, but libyaml folds some long lines differently,
    which would change files that are written again.
    """
    import yaml

    def text(dumper: Any, value: str) -> Any:
        style = "'" if _NO_TEXT_ELSEWHERE.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    quick = yaml.SafeDumper if for_files else getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper = type("TextDumper", (quick,), {})
    dumper.add_representer(str, text)  # type: ignore[attr-defined]
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False))


def _load(text: str, path: str = "") -> list[Any]:
    # Not in `except`: if Ctrl-C interrupts the import, the second one fails with another error.
    invalid = unreadable()
    try:
        return load_all(text)
    except invalid as error:
        raise UsageError(
            f"{path} is not valid YAML: {_reason(error, text)}", next=f"correct {path}"
        ) from error


def has_template(text: str) -> bool:
    """A text has placeholders or statements of a template language, such as Go's or Jinja."""
    return bool(_STATEMENT.search(text))


def _reason(error: Exception, text: str) -> str:
    """Why a text is invalid, and in which line if that is known."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem and mark:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        if problem == _TEMPLATE:
            problem += " of a template, such as {{ .name }}"
        elif problem == _CHARACTER and line.lstrip(" ").startswith("\t"):
            problem = "a tab indents it; use spaces"
        elif statement := _STATEMENT.search(line):
            problem += f", as in a template: {statement[0]}"
        return f"{problem} (line {mark.line + 1})"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ", ".join(lines[:2]) or type(error).__name__

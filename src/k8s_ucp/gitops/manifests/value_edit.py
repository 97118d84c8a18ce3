"""Edits one value at a path of a YAML file, without changing anything else.

A path consists of keys and positions (`image.tag`, `spec.containers.0.image`). Missing keys are
added in the usual layout, and a list can be copied from another file. As with images, the result is
parsed and compared with the intended change before it is returned.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat

from k8s_ucp.gitops.manifests.image_edit import (
    LINE_BREAK,
    TextEdit,
    line_break,
    line_start,
    quoted,
    reads_as_text,
    rewrite_value,
    splice,
)
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_documents

Path = tuple[str | int, ...]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def parse_path(text: str) -> Path:
    r"""Parse a path: parts separated by dots, positions as numbers, `\.` for a literal dot."""
    parts = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", text)]
    return tuple(int(part) if re.fullmatch(r"[0-9]{1,4}", part) else part for part in parts)


def path_text(path: Path) -> str:
    """The path as text, the inverse of parse_path."""
    return ".".join(str(part).replace(".", "\\.") for part in path)


def node_at(root: YamlNode | None, path: Path) -> YamlNode | None:
    """The node at a path, with aliases resolved; None if there is none."""
    node = root.resolved() if root else None
    for part in path:
        if node is None:
            return None
        child = _child(node, part)
        node = child.resolved() if child else None
    return node


def text_at(root: YamlNode | None, path: Path) -> str | None:
    """The scalar at a path, "" for null; None if there is no scalar."""
    node = node_at(root, path)
    return None if node is None or node.kind != "scalar" else scalar_text(node)


def scalar_text(node: YamlNode) -> str:
    """The value of a scalar, "" for null."""
    null = node.style == "" and node.value.lower() in ("", "~", "null")
    return "" if null else node.value


def list_of(path: Path) -> Path:
    """The path of the outermost list that a path leads into; () if there is none."""
    index = next((index for index, part in enumerate(path) if isinstance(part, int)), 0)
    return path[:index]


def with_list(text: str, path: Path, where: str, source: str, source_where: str) -> str:
    """The text with the outermost list of a path, copied from another text if it has none.

    Helm replaces lists as a whole, so one item alone can't be set in another file. Raises
    NotEditable.
    """
    whole = list_of(path)
    found = node_at(_first_root(source, source_where), whole)
    if not whole or found is None or node_at(_first_root(text, where), whole) is not None:
        return text
    refused = NotEditable(
        f"{where} has no {path_text(whole)}, and the list in {source_where} can't be copied to it "
        "automatically",
        next=f"copy the list {path_text(whole)} to {where} by hand, then promote again",
    )
    if found.kind != "list" or any(each.anchor or each.target for each in found.walk()):
        raise refused
    held = set_value(text, whole, _HELD, where)
    root = _first_root(held, where)
    parent, node = node_at(root, whole[:-1]), node_at(root, whole)
    if parent is None or node is None or (parent.flow and not found.flow):
        raise refused
    start, copied = node.start, source[found.start : found.end]
    if not found.flow:
        line = line_start(held, node.start)
        indent = re.match(r" *", held[line:])
        start = held.rindex(":", line, node.start) + 1
        copied = _moved(source, found, f"{indent[0] if indent else ''}  ", line_break(held))
    new = held[:start] + copied + held[node.end :]
    try:
        after = _first_root(new, where)
    except NotEditable as error:
        raise refused from error
    made = node_at(after, whole)
    same = made is not None and made.shape(made, ()) == found.shape(found, ())
    if (
        not same
        or not root
        or not after
        or _but([root], root, whole) != _but([after], after, whole)
    ):
        raise refused
    return new


_HELD = "ucp-copies-a-list-here"
"""Stands for a list until it is copied."""


def _moved(source: str, node: YamlNode, indent: str, ending: str) -> str:
    """The lines of a block list, each after a line break and with another indentation."""
    first = line_start(source, node.start)
    column = node.start - first
    last = LINE_BREAK.search(source, max(_end(node) - 1, 0))
    lines = source[first : last.start() if last else len(source)].splitlines()
    moved = [
        f"{indent}{line[column:] if not line[:column].strip() else line.lstrip()}".rstrip(" ")
        for line in lines
    ]
    return ending + ending.join(moved)


def _first_root(text: str, where: str) -> YamlNode | None:
    return next(iter(read_documents(text, where)), None)


def set_value(text: str, path: Path, value: str, where: str, document: int = 0) -> str:
    """Set a string at a path of a document: the new text. Raises NotEditable."""
    what = f"{where}, {path_text(path)}"
    if not path or isinstance(path[-1], int):
        raise NotEditable(f"{what} is not the path of a key")
    roots = read_documents(text, where)
    root = roots[document] if document < len(roots) else None
    if root is None or (root.kind == "scalar" and not scalar_text(root)):
        if roots[1:]:
            raise NotEditable(f"{what}: the document is empty")
        return _proven(text, _appended(text, path, value, what), path, value, where, document)
    parent, rest = _deepest(root, path, what)
    _refuse_shared(_aliases(roots), root, path, what)
    if len(rest) == 1 and parent.own(str(rest[0])):
        return _replaced(text, {(document, path): value}, where)
    edit = _insert(text, parent, _keys(rest, what), value)
    return _proven(text, splice(text, [edit]), path, value, where, document)


DocumentPath = tuple[int, Path]
"""(position of the document, path in it)."""


def set_values(text: str, values: Mapping[DocumentPath, str], where: str) -> str:
    """Set strings at several paths of a file: the new text. Raises NotEditable.

    Those that exist are replaced at once: parsing the file for each of hundreds takes minutes.
    """
    roots = read_documents(text, where)
    existing = {
        place: value
        for place, value in values.items()
        if node_at(next(iter(roots[place[0] :]), None), place[1]) is not None
    }
    text = _replaced(text, existing, where)
    for (document, path), value in values.items():
        if (document, path) not in existing:
            text = set_value(text, path, value, where, document)
    return text


def _replaced(text: str, values: Mapping[DocumentPath, str], where: str) -> str:
    """The text with other strings at existing paths. Raises NotEditable."""
    roots = read_documents(text, where)
    used = _aliases(roots)
    edits: list[TextEdit] = []
    wanted: dict[int, str] = {}
    for (document, path), value in values.items():
        what = f"{where}, {path_text(path)}"
        parent, rest = _deepest(roots[document], path, what)
        _refuse_shared(used, roots[document], path, what)
        pair = parent.own(str(rest[0]))
        if len(rest) > 1 or pair is None:
            raise NotEditable(f"{what} is not the path of a key")
        edits += rewrite_value(text, pair, str(rest[0]), value, what)
        wanted[id(pair[1])] = value
    new = splice(text, edits)
    after = read_documents(new, where)
    if len(roots) != len(after) or not all(map(_is_same, roots, after, repeat(wanted))):
        paths = ", ".join(path_text(path) for _, path in islice(values, 3))
        raise NotEditable(f"{where}: {paths} can't be edited automatically", next="edit it by hand")
    return new


def _is_same(old: YamlNode, new: YamlNode, wanted: Mapping[int, str]) -> bool:
    """The trees are equal, except for nodes that have the wanted string. wanted: by node's id."""
    if id(old) in wanted:
        return new.kind == "scalar" and new.value == wanted[id(old)]
    olds = [*chain.from_iterable(old.pairs), *old.items]
    news = [*chain.from_iterable(new.pairs), *new.items]
    return (
        old.own_shape() == new.own_shape()
        and len(olds) == len(news)
        and all(map(_is_same, olds, news, repeat(wanted)))
    )


def _child(node: YamlNode, part: str | int) -> YamlNode | None:
    if node.kind == "list" and isinstance(part, int):
        return node.items[part] if part < len(node.items) else None
    pair = node.own(str(part)) if node.kind == "map" else None
    return pair[1] if pair else None


def _deepest(root: YamlNode, path: Path, what: str) -> tuple[YamlNode, Path]:
    """The deepest existing mapping or list on the path, and the remaining path."""
    node = root
    for index, part in enumerate(path):
        rest = path[index:]
        if node.kind == "alias":
            raise NotEditable(f"{what} is behind the YAML alias *{node.value}")
        if node.kind == "map" and sum(key.value == str(part) for key, _ in node.pairs) > 1:
            raise NotEditable(f"{what} has the duplicate key {part}")
        child = _child(node, part)
        if node.kind == "scalar" or (node.kind == "list" and child is None):
            raise NotEditable(f"{what}: {path_text(path[:index])} has no {part}")
        if child is None or len(rest) == 1:
            return node, rest
        node = child
    raise AssertionError("a path has at least one part")


def _aliases(roots: Sequence[YamlNode]) -> set[str]:
    """The anchors that aliases refer to."""
    return {node.value for each in roots for node in each.walk() if node.kind == "alias"}


def _refuse_shared(used: Container[str], root: YamlNode, path: Path, what: str) -> None:
    """Raise NotEditable if an alias uses the value elsewhere, because that would change too.

    used: the anchors that aliases refer to.
    """
    for node in _way(root, path):
        if node.kind != "alias" and node.anchor in used:
            raise NotEditable(
                f"{what} is at the YAML anchor &{node.anchor}, which is also used elsewhere",
                next="write the value without the anchor",
            )


def _way(root: YamlNode, path: Path) -> Iterator[YamlNode]:
    node: YamlNode | None = root
    yield root
    for part in path:
        node = _child(node, part) if node else None
        if node:
            yield node


def _keys(rest: Path, what: str) -> list[str]:
    keys = [str(part) for part in rest if not isinstance(part, int)]
    if len(keys) != len(rest):
        raise NotEditable(f"{what} does not exist, and items of a list are not added")
    return keys


def _insert(text: str, parent: YamlNode, keys: Sequence[str], value: str) -> TextEdit:
    """Add a pair after the last one of a mapping."""
    if parent.flow:
        if parent.pairs:
            end = parent.pairs[-1][1].end
            return TextEdit(end, end, f", {_flow(keys, value)}")
        start = text.index("{", parent.start)
        alone = not text[:start].rpartition("\n")[2].strip()
        if alone and not text[start:].lstrip("{").strip().strip("}").strip():
            end = parent.end
            return TextEdit(start, end, line_break(text).join(_block(keys, value, "")))
        return TextEdit(start + 1, start + 1, _flow(keys, value))
    first = parent.pairs[0][0]
    before = line_start(text, first.start)
    indent = " " * (first.start - before - text[before : first.start].count("\ufeff"))
    lines = _block(keys, value, indent)
    ending = line_break(text)
    end = _end(parent)
    if end and text[end - 1] in "\r\n":
        return TextEdit(end, end, "".join(line + ending for line in lines))
    following = LINE_BREAK.search(text, end)
    if following is None:
        return TextEdit(len(text), len(text), "".join(ending + line for line in lines))
    return TextEdit(following.end(), following.end(), "".join(line + ending for line in lines))


def _appended(text: str, path: Path, value: str, what: str) -> str:
    """An empty document's text, with the value appended."""
    ending = line_break(text)
    lines = _block(_keys(path, what), value, "")
    start = text if not text or text[-1] in "\r\n" else text + ending
    return start + "".join(line + ending for line in lines)


def _block(keys: Sequence[str], value: str, indent: str) -> list[str]:
    lines = [f"{indent}{'  ' * depth}{_key(key)}:" for depth, key in enumerate(keys)]
    return [*lines[:-1], f"{lines[-1]} {quoted(value, '')}"]


def _flow(keys: Sequence[str], value: str) -> str:
    opened = "".join(f"{_key(key)}: {{" for key in keys[:-1])
    written = quoted(value, "")
    return f"{opened}{_key(keys[-1])}: {written}{'}' * (len(keys) - 1)}"


def _key(key: str) -> str:
    return key if _WORD.fullmatch(key) and reads_as_text(key) else f'"{key}"'


def _end(node: YamlNode) -> int:
    """Where the last nested value of a block ends."""
    while node.kind in ("map", "list") and not node.flow and (node.pairs or node.items):
        node = node.pairs[-1][1] if node.pairs else node.items[-1]
    return node.end


def _proven(before: str, after: str, path: Path, value: str, where: str, document: int) -> str:
    """The new text. Raises NotEditable unless it has the intended value and is otherwise equal."""
    old, new = read_documents(before, where), read_documents(after, where)
    root = new[document] if document < len(new) else None
    found = node_at(root, path)
    right = found is not None and found.kind == "scalar" and found.value == value
    was = old[document] if document < len(old) else None
    if right and was and was.kind != "scalar" and root:
        right = len(old) == len(new) and _but(old, was, path) == _but(new, root, path, was)
    if not right:
        raise NotEditable(
            f"{where}: {path_text(path)} can't be edited automatically", next="edit it by hand"
        )
    return after


def _but(
    roots: Sequence[YamlNode], root: YamlNode, path: Path, like: YamlNode | None = None
) -> object:
    """The shape of all documents without the value at a path, or without what was added for it.

    like: the original document, which determines what existed before.
    """
    like = like or root
    for part in path[:-1]:
        child = _child(like, part)
        if child is None:
            return [each.shape(root, (str(part),)) for each in roots]
        like, root = child, _child(root, part) or root
    return [each.shape(root, (str(path[-1]),)) for each in roots]

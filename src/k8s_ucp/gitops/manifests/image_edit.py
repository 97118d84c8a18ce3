"""Edits tag or digest of an image in a kustomization, without changing anything else.

The file is the user's: comments, order, quoting and line endings are preserved. The result is
parsed and compared with the intended change before it is returned, so an unsupported layout leads
to an error, never to a different change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_tree

TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
"""A tag as in the OCI distribution specification; use fullmatch."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
"""A digest with one of the two registered algorithms; use fullmatch."""

_NAME = re.compile(r"[!-~]{1,500}")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_NUMBER_OR_DATE = re.compile(
    r"[0-9][0-9_]*(\.[0-9_]*)?([eEpP][-+]?[0-9_.]*)?|0[xXoObB][0-9a-fA-F_.pP+-]*|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"|[0-9]+(:[0-9]+)+"
)
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)*")
LINE_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Pin:
    """The version of an image: a tag, a digest, or both (the digest then takes precedence)."""

    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return "@".join(each for each in (self.tag, self.digest) if each)

    def __bool__(self) -> bool:
        return bool(self.tag or self.digest)


NO_PIN = Pin()


class NoImages(NotEditable):
    """A kustomization lists no images. where: its path."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"{where} has no images", next=f"add `images:` with the image's name to {where}"
        )


@dataclass(frozen=True)
class Image:
    """One entry of `images`."""

    name: str
    new_name: str
    pin: Pin


def read_images(text: str, where: str) -> list[Image]:
    """The entries of a kustomization, in order. Raises NotEditable, and NoImages without any."""
    root = read_tree(text, where)
    return [_image(entry) for entry in _entries(root, where)]


def set_pin(text: str, name: str, pin: Pin, where: str) -> str:
    """Set the version of the image `name` (`images[].name`) in a kustomization's text.

    Exactly one line changes, or one is added if the image had neither tag nor digest. If it had
    both and gets only one, the line of the other is removed. Raises NotEditable.
    """
    root = read_tree(text, where)
    entry = _entry(_entries(root, where), name, where)
    if _image(entry).pin == pin:
        return text
    _refuse_shared(root, entry, name, where)
    changed = splice(text, _edits(text, entry, pin, f"{where}, image {name}"))
    _prove(root, changed, name, pin, where)
    return changed


def quoted(value: str, style: str) -> str:
    """A tag or digest as YAML in that quoting style; plain only if it is still read as a string."""
    if style in ("'", '"'):
        return f"{style}{value}{style}"
    return value if reads_as_text(value) else f'"{value}"'


def reads_as_text(value: str) -> bool:
    """Every YAML parser reads the unquoted tag or digest as a string.

    False also for some values that most parsers read as strings: quoting is always correct.
    """
    if value.lower() in _WORDS or not value or not (value[0].isascii() and value[0].isalnum()):
        return False
    return not _NUMBER_OR_DATE.fullmatch(value)


def _entries(root: YamlNode, where: str) -> list[YamlNode]:
    pair = _pair(root, "images", where) if root.kind == "map" else None
    if root.kind != "map" or pair is None or pair[1].resolved().kind != "list":
        raise NoImages(where)
    entries = pair[1].resolved().items
    if not entries:
        raise NoImages(where)
    for entry in entries:
        if entry.resolved().kind != "map":
            raise NotEditable(f"{where} has an entry under images that is not a mapping")
        name = _text_of(entry.resolved(), "name")
        if not _NAME.fullmatch(name):
            raise NotEditable(f"{where} has an entry under images with the invalid name {name!r}")
    return entries


def _entry(entries: list[YamlNode], name: str, where: str) -> YamlNode:
    found = [entry for entry in entries if _text_of(entry.resolved(), "name") == name]
    if len(found) != 1:
        times = f"{len(found)} times" if found else "not"
        raise NotEditable(f"{where} lists the image {name} {times} under images; expected once")
    if found[0].kind == "alias":
        raise NotEditable(f"{where}: the image {name} is a YAML alias (*{found[0].value})")
    for key in ("newTag", "digest", "newName", "name"):
        _pair(found[0], key, where)
    return found[0]


def _pair(mapping: YamlNode, key: str, where: str) -> tuple[YamlNode, YamlNode] | None:
    """The pair with that key. Raises NotEditable if the key occurs twice."""
    times = sum(each.kind == "scalar" and each.value == key for each, _ in mapping.pairs)
    if times > 1:
        raise NotEditable(f"{where} has the duplicate key {key} ({times} times)")
    return mapping.own(key)


def _image(entry: YamlNode) -> Image:
    mapping = entry.resolved()
    pin = Pin(_text_of(mapping, "newTag"), _text_of(mapping, "digest"))
    return Image(_text_of(mapping, "name"), _text_of(mapping, "newName"), pin)


def _text_of(mapping: YamlNode, key: str, depth: int = 0) -> str:
    """The scalar at a key, including merged mappings (`<<`); "" if there is none."""
    pair = mapping.own(key)
    if pair:
        value = pair[1].resolved()
        null = value.style == "" and value.value.lower() in ("", "~", "null")
        return value.value if value.kind == "scalar" and not null else ""
    merged = mapping.own("<<")
    if not merged or depth > 8:
        return ""
    source = merged[1].resolved()
    for each in source.items if source.kind == "list" else [source]:
        found = _text_of(each.resolved(), key, depth + 1)
        if found:
            return found
    return ""


def _refuse_shared(root: YamlNode, entry: YamlNode, name: str, where: str) -> None:
    """Raise NotEditable if an alias uses the value elsewhere, because that would change too."""
    used = {node.value for node in root.walk() if node.kind == "alias"}
    images = root.own("images")
    holders = [entry, *([images[1].resolved()] if images else [])]
    for key in ("newTag", "digest"):
        pair = entry.own(key)
        holders.extend(pair or ())
    for node in holders:
        if node.anchor in used:
            raise NotEditable(
                f"{where}: the image {name} is at the YAML anchor &{node.anchor}, "
                "which is also used elsewhere; changing it would change more than this "
                "image",
                next=f"give the image its own newTag in {where}",
            )


@dataclass(frozen=True)
class TextEdit:
    """Replaces text[start:end]."""

    start: int
    end: int
    text: str


def splice(text: str, edits: list[TextEdit]) -> str:
    """Apply edits that don't overlap."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edits(text: str, entry: YamlNode, pin: Pin, what: str) -> list[TextEdit]:
    wanted = {"newTag": pin.tag, "digest": pin.digest}
    present = {key: pair for key in wanted if (pair := entry.own(key))}
    missing = [key for key, value in wanted.items() if value and key not in present]
    # Keep a key with an empty value: it has no effect.
    surplus = [key for key in present if not wanted[key] and _text_of(entry, key)]
    edits = [
        edit
        for key, pair in present.items()
        if wanted[key]
        for edit in rewrite_value(text, pair, key, wanted[key], what)
    ]
    for key in missing:
        if surplus:
            # Tag instead of digest or vice versa: reuse the line and change its key.
            edits += rewrite_value(text, present[surplus.pop()], key, wanted[key], what)
        else:
            edits += _insert(text, entry, key, wanted[key], what)
    for key in surplus:
        edits += _remove(text, entry, present[key], what)
    return edits


def rewrite_value(
    text: str, pair: tuple[YamlNode, YamlNode], name: str, value: str, what: str
) -> list[TextEdit]:
    """Replace the value in an existing line, and its key by `name`. Raises NotEditable."""
    key, old = pair
    edits = []
    if key.value != name:
        edits.append(TextEdit(key.start, key.end, f"{key.style}{name}{key.style}"))
    written = text[old.start : old.end]
    if old.kind not in ("scalar", "alias"):
        raise NotEditable(f"{what}: {key.value} is not a string")
    if old.style in ("|", ">") or LINE_BREAK.search(written.strip()):
        raise NotEditable(f"{what}: {key.value} spans several lines")
    if old.tag not in ("", "!", "tag:yaml.org,2002:str", "!!str"):
        raise NotEditable(f"{what}: {key.value} carries the YAML tag {old.tag}")
    if old.kind == "scalar" and not written.strip():
        colon = text.index(":", key.end) + 1
        return [*edits, TextEdit(colon, colon, " " + quoted(value, ""))]
    head = _PROPERTIES.match(written)
    start = old.start + (head.end() if head and old.kind == "scalar" else 0)
    return [*edits, TextEdit(start, old.end, quoted(value, old.style))]


def _insert(text: str, entry: YamlNode, key: str, value: str, what: str) -> list[TextEdit]:
    """Add a line (in a flow mapping: a pair) after the image's name."""
    pairs = [pair for pair in (entry.own("name"), entry.own("newName")) if pair]
    if not pairs:
        raise NotEditable(f"{what} has no {key}, and its name comes from a YAML anchor")
    name, last = max(pairs, key=lambda pair: pair[1].end)
    written = f"{name.style}{key}{name.style}: {quoted(value, last.style)}"
    if entry.flow:
        return [TextEdit(last.end, last.end, f", {written}")]
    before = line_start(text, name.start)
    following = LINE_BREAK.search(text, last.end)
    ending = line_break(text)
    indent = " " * (name.start - before - text[before : name.start].count("\ufeff"))
    if following is None:
        return [TextEdit(len(text), len(text), f"{ending}{indent}{written}")]
    return [TextEdit(following.end(), following.end(), f"{indent}{written}{ending}")]


def _remove(
    text: str, entry: YamlNode, pair: tuple[YamlNode, YamlNode], what: str
) -> list[TextEdit]:
    """Remove a line. If it contains other keys too, empty the value: kustomize ignores that."""
    key, value = pair
    start = line_start(text, key.start)
    if entry.flow or text[start : key.start].strip() or value.style in ("|", ">"):
        return _write_empty(text, pair, what)
    ending = LINE_BREAK.search(text, value.end)
    return [TextEdit(start, ending.end() if ending else len(text), "")]


def _write_empty(text: str, pair: tuple[YamlNode, YamlNode], what: str) -> list[TextEdit]:
    _, value = pair
    if value.kind != "scalar" or LINE_BREAK.search(text[value.start : value.end]):
        raise NotEditable(f"{what}: {pair[0].value} can't be removed automatically")
    return [TextEdit(value.start, value.end, '""')]


def line_start(text: str, index: int) -> int:
    """Index of the first character of the line that contains `index`."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_break(text: str) -> str:
    """The line ending that the text uses."""
    found = LINE_BREAK.search(text)
    return found.group() if found else "\n"


def _prove(before: YamlNode, text: str, name: str, pin: Pin, where: str) -> None:
    """Raise NotEditable unless the new text has the intended value and is otherwise equal."""
    after = read_tree(text, where)
    old, new = _entries(before, where), _entries(after, where)
    position = old.index(_entry(old, name, where))
    versions = ("newTag", "digest")
    if (
        len(old) != len(new)
        or _image(new[position]).pin != pin
        or before.shape(old[position], versions) != after.shape(new[position], versions)
    ):
        raise NotEditable(
            f"{where}: the entry of the image {name} can't be edited automatically",
            next=f"rewrite it by hand as a block with name and newTag in {where}",
        )

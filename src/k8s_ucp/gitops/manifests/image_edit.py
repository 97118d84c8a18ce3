"""The edit: another tag or digest in a kustomization's `images`, and not a byte more.

Files are people's: comments, order, quoting and line endings stay. What was written is read back
and compared with what was meant before it is handed on, so a layout that this module does not
know ends in a refusal, never in a different change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_tree

TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
"""A tag as the OCI distribution specification has it; use fullmatch."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
"""A digest of the two algorithms that are registered; use fullmatch."""

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
    """What an image is held to: a tag, a digest, or both (the digest then decides)."""

    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return "@".join(each for each in (self.tag, self.digest) if each)

    def __bool__(self) -> bool:
        return bool(self.tag or self.digest)


NO_PIN = Pin()


@dataclass(frozen=True)
class Image:
    """One entry of `images`."""

    name: str
    new_name: str
    pin: Pin


def read_images(text: str, where: str) -> list[Image]:
    """The entries of a kustomization, in order. Raises NotEditable."""
    root = read_tree(text, where)
    return [_image(entry) for entry in _entries(root, where)]


def set_pin(text: str, name: str, pin: Pin, where: str) -> str:
    """The kustomization's text with the image `name` (as `images[].name` has it) held to `pin`.

    Exactly one line differs, or one is added where the image had neither tag nor digest; where it
    had both and gets one, the other one's line goes. Raises NotEditable.
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
    """A tag or digest as YAML text in that quoting; plain only where it stays a string."""
    if style in ("'", '"'):
        return f"{style}{value}{style}"
    return value if reads_as_text(value) else f'"{value}"'


def reads_as_text(value: str) -> bool:
    """An unquoted tag or digest is read as a string by every YAML parser.

    False also for a few that most parsers take for strings: quoting is never wrong.
    """
    if value.lower() in _WORDS or not value or not (value[0].isascii() and value[0].isalnum()):
        return False
    return not _NUMBER_OR_DATE.fullmatch(value)


def _entries(root: YamlNode, where: str) -> list[YamlNode]:
    pair = _pair(root, "images", where) if root.kind == "map" else None
    if root.kind != "map" or pair is None or pair[1].resolved().kind != "list":
        raise NotEditable(f"{where} has no images", next=_ADD_IMAGES.format(where=where))
    entries = pair[1].resolved().items
    if not entries:
        raise NotEditable(f"{where} has no images", next=_ADD_IMAGES.format(where=where))
    for entry in entries:
        if entry.resolved().kind != "map":
            raise NotEditable(f"{where} has an entry under images that is not a mapping")
        name = _text_of(entry.resolved(), "name")
        if not _NAME.fullmatch(name):
            raise NotEditable(f"{where} has an entry under images with the invalid name {name!r}")
    return entries


_ADD_IMAGES = "add `images:` with the image's name to {where}"


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
    """Its pair with that key. Raises NotEditable where the key is there twice."""
    times = sum(each.kind == "scalar" and each.value == key for each, _ in mapping.pairs)
    if times > 1:
        raise NotEditable(f"{where} has the duplicate key {key} ({times} times)")
    return mapping.own(key)


def _image(entry: YamlNode) -> Image:
    mapping = entry.resolved()
    pin = Pin(_text_of(mapping, "newTag"), _text_of(mapping, "digest"))
    return Image(_text_of(mapping, "name"), _text_of(mapping, "newName"), pin)


def _text_of(mapping: YamlNode, key: str, depth: int = 0) -> str:
    """The scalar under a key, merged mappings (`<<`) included; "" where there is none."""
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
    """What an alias repeats elsewhere can't be changed here alone."""
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
    """Other characters in place of text[start:end]."""

    start: int
    end: int
    text: str


def splice(text: str, edits: list[TextEdit]) -> str:
    """The text with the edits, which don't overlap."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edits(text: str, entry: YamlNode, pin: Pin, what: str) -> list[TextEdit]:
    wanted = {"newTag": pin.tag, "digest": pin.digest}
    there = {key: pair for key in wanted if (pair := entry.own(key))}
    missing = [key for key, value in wanted.items() if value and key not in there]
    # An empty one that is there says nothing and stays as it is.
    surplus = [key for key in there if not wanted[key] and _text_of(entry, key)]
    edits = [
        edit
        for key, pair in there.items()
        if wanted[key]
        for edit in rewrite_value(text, pair, key, wanted[key], what)
    ]
    for key in missing:
        if surplus:
            # Tag for digest or the other way round: the line changes its key too.
            edits += rewrite_value(text, there[surplus.pop()], key, wanted[key], what)
        else:
            edits += _insert(text, entry, key, wanted[key], what)
    for key in surplus:
        edits += _remove(text, entry, there[key], what)
    return edits


def rewrite_value(
    text: str, pair: tuple[YamlNode, YamlNode], name: str, value: str, what: str
) -> list[TextEdit]:
    """Another value in a line that is there, under the key `name`."""
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
    """A new line (in a flow mapping: a new pair) behind the image's name."""
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
    """Take a line out; where it shares its line with others, empty it: kustomize skips that."""
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
    """Where the line with that character begins."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_break(text: str) -> str:
    """How the text ends its lines."""
    found = LINE_BREAK.search(text)
    return found.group() if found else "\n"


def _prove(before: YamlNode, text: str, name: str, pin: Pin, where: str) -> None:
    """The new text says what was meant, and otherwise what the old one said."""
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

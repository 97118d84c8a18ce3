"""`--batch FILE`: several promotions that land in one commit, or not at all. Pure.

A YAML (or JSON) list. Each item has `app`, `env` and one of `tag`, `digest`, `from`, `images` and
`chartVersion`, and optionally `sequence`, `expect` and `requireEnv`. Fields that an item leaves out
are taken from the command line.
"""

from __future__ import annotations

import re
from dataclasses import replace

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import NO_PIN
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_tree
from k8s_ucp.gitops.promotion.decision import Intent
from k8s_ucp.gitops.promotion.order import HIGHEST_SEQUENCE, Order
from k8s_ucp.gitops.promotion.overlay import check_name, nearest
from k8s_ucp.gitops.promotion.targets.versions import parse_chart_version, parse_version

VERSIONS = ("tag", "digest", "from", "images", "chartVersion")
KEYS = ("app", "env", *VERSIONS, "sequence", "expect", "requireEnv")


EXAMPLE = "- {app: echo, env: stage, tag: 1.2.3}"


def read_batch(text: str, where: str, defaults: Intent) -> list[Intent]:
    """Parse a batch file. Raises UsageError naming the invalid item."""
    try:
        root = read_tree(text, where)
    except NotEditable as error:
        raise UsageError(error.message, next=f"write {where} as a YAML list") from error
    listed = root.own("promotions") if root.kind == "map" else None
    items = (listed[1] if listed else root).items
    if not items:
        raise UsageError(f"{where} contains no promotions", next=EXAMPLE)
    intents = [
        _intent(item, f"{where}, item {index}", defaults) for index, item in enumerate(items, 1)
    ]
    _refuse_twice(intents, where)
    return intents


def _refuse_twice(intents: list[Intent], where: str) -> None:
    seen: dict[tuple[str, str], list[Intent]] = {}
    for intent in intents:
        others = seen.setdefault((intent.app, intent.env), [])
        for other in others:
            if not intent.images or not other.images or set(intent.images) & set(other.images):
                raise UsageError(
                    f"{where} contains two promotions of {intent.app} to {intent.env}",
                    next="write each image of an overlay once",
                )
        others.append(intent)


def _intent(item: YamlNode, what: str, defaults: Intent) -> Intent:
    if item.kind != "map":
        raise UsageError(f"{what} is not a mapping", next=EXAMPLE)
    fields: dict[str, YamlNode] = {}
    for key, value in item.pairs:
        if key.value not in KEYS:
            raise UsageError(
                f"{what} has an unknown key {key.value}", next=nearest(key.value, KEYS)
            )
        fields[key.value] = value.resolved()
    texts = {key: node.value for key, node in fields.items() if node.kind == "scalar"}
    for name in ("app", "env"):
        if not texts.get(name):
            raise UsageError(f"{what} has no {name}", next=EXAMPLE)
        check_name(name, texts[name])
    if len([key for key in VERSIONS if key in fields]) != 1:
        raise UsageError(
            f"{what} needs exactly one of tag, digest, from, images and chartVersion", next=EXAMPLE
        )
    version = texts.get("tag") or texts.get("digest")
    chart = texts.get("chartVersion")
    images = fields["images"].pairs if "images" in fields else []
    return replace(
        defaults,
        app=texts["app"],
        env=texts["env"],
        pin=parse_version(version) if version else NO_PIN,
        source=texts.get("from", ""),
        images={key.value: parse_version(value.value) for key, value in images},
        charts={"": parse_chart_version(chart)} if chart else {},
        order=_order(texts, what, defaults.order),
        expect=texts.get("expect", defaults.expect),
        require_env=texts.get("requireEnv", defaults.require_env),
    )


def _order(texts: dict[str, str], what: str, default: Order) -> Order:
    number = texts.get("sequence")
    if number is None:
        return default
    if not re.fullmatch("[0-9]{1,19}", number) or int(number) > HIGHEST_SEQUENCE:
        raise UsageError(
            f"{what}: the sequence {number!r} is not a valid number",
            next="use an integer of 0 or more",
        )
    return Order(sequence=int(number))

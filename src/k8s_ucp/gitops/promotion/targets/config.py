"""Parses `apps/<app>/.promotion.yaml`: targets that can't be detected automatically. Pure.

```yaml
targets:
  - {image: example.org/web, path: web.image.tag}
  - {image: worker, file: "jobs-{env}.yaml", container: worker}
```
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.gitops.manifests.value_edit import Path, parse_path
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_tree

KEYS = ("image", "chart", "path", "file", "container", "repo")


@dataclass(frozen=True)
class Named:
    """One entry of `targets`."""

    name: str
    chart: bool = False
    paths: tuple[Path, ...] = ()
    file: str = ""
    container: str = ""
    repo: str = ""
    """For a chart: where its versions are fetched from."""


def read_config(text: str | None, where: str, env: str) -> tuple[Named, ...]:
    """The targets for an environment; empty if there is no file. Raises NotEditable."""
    if text is None or not text.strip():
        return ()
    root = read_tree(text, where)
    pair = root.own("targets") if root.kind == "map" else None
    if pair is None or pair[1].resolved().kind != "list":
        raise NotEditable(f"{where} has no list `targets`", next=f"write {where} as {EXAMPLE}")
    return tuple(_named(item.resolved(), where, env) for item in pair[1].resolved().items)


EXAMPLE = "targets: [{image: NAME, path: image.tag}]"


def _named(item: YamlNode, where: str, env: str) -> Named:
    keys = [key.value for key, _ in item.pairs]
    unknown = [key for key in keys if key not in KEYS]
    if item.kind != "map" or unknown or ("image" in keys) == ("chart" in keys):
        problem = f"has an unknown key {unknown[0]}" if unknown else "needs either image or chart"
        raise NotEditable(f"{where}: an entry of targets {problem}", next=f"write it as {EXAMPLE}")
    chart = "chart" in keys
    file = item.text("file").replace("{env}", env)
    if file.startswith("/") or ".." in file.split("/"):
        raise NotEditable(f"{where}: the file {file} is outside of the environment's folder")
    return Named(
        name=item.text("chart" if chart else "image"),
        chart=chart,
        paths=tuple(parse_path(each) for each in _paths(item)),
        file=file,
        container=item.text("container"),
        repo=item.text("repo"),
    )


def _paths(item: YamlNode) -> list[str]:
    pair = item.own("path")
    if pair is None:
        return []
    value = pair[1].resolved()
    return [each.resolved().value for each in value.items] if value.kind == "list" else [
        value.value
    ]  # fmt: skip

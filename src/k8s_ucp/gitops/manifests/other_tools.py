"""Detects files of unsupported deployment tools, and suggests alternatives. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.yaml_text import OBJECT, first_map, maps, part, texts

FLEET = "Rancher Fleet"
CUE = "CUE"
"""Timoni's modules are written in it, too."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_YTT = re.compile(
    rb"^[ \t]*#@(?:[ \t]*load\(|data/values|overlay/|schema/)|:[ \t]+#@[ \t]", re.MULTILINE
)
"""Annotations of ytt are comments for every other program, which reads null for their values."""
Advice = Callable[[str, Mapping[str, Any]], str]
"""(name of an app, content of the file) to the command to suggest."""


@dataclass(frozen=True)
class OtherTool:
    """A configuration file of an unsupported deployment tool."""

    name: str
    path: str
    deploys: bool
    """It defines by itself what is deployed; other tools only accompany manifests."""
    _advice: Advice
    _content: bytes

    @property
    def folder(self) -> str:
        """The folder that the file is about."""
        return self.path.rpartition("/")[0].removesuffix("cue.mod").rstrip("/")

    @property
    def words(self) -> str:
        return f"{self.path} of {self.name} is not read"

    def advice(self, app: str = "NAME") -> str:
        """The command to suggest."""
        try:
            return self._advice(app, first_map(self._content, self.path))
        except UsageError:
            # Most such files are templates.
            return self._advice(app, {})


def find_tools(files: Mapping[str, bytes]) -> list[OtherTool]:
    """Files of such tools in a folder, the most likely ones first."""
    return [
        OtherTool(name, path, deploys, advice, content)
        for name, pattern, deploys, advice in _TOOLS
        for path, content in sorted(files.items(), key=lambda each: (each[0].count("/"), each[0]))
        # Fleet's own file has no such field.
        if pattern.fullmatch(path) and not (name == FLEET and OBJECT.search(content))
    ]


def is_of_tool(path: str) -> bool:
    """The file is one that such a tool reads."""
    return any(pattern.fullmatch(path) for _, pattern, _, _ in _TOOLS)


def ytt_problem(files: Mapping[str, bytes]) -> UsageError | None:
    """Why the files can't be added, if ytt of Carvel has to fill one of them first."""
    for path in sorted(files):
        if _is_of_ytt(files[path], path):
            return UsageError(
                f"{path} is a template of ytt (Carvel)",
                next="ytt -f FOLDER > FILE.yaml; then: ucp app add NAME FILE.yaml",
            )
    return None


def _is_of_ytt(content: bytes, path: str) -> bool:
    """A text in a manifest isn't one, such as a template in an App of kapp-controller."""
    found = [each.group().decode("utf-8", "replace").strip() for each in _YTT.finditer(content)]
    if not found:
        return False
    try:
        inside = "\n".join(texts(content, path))
    except UsageError:
        return True
    return any(inside.count(each) < found.count(each) for each in found)


def _of_fleet(app: str, content: Mapping[str, Any]) -> str:
    helm = part(content, "helm")
    command = _chart(app, helm.get("repo"), helm.get("chart"), helm.get("version"))
    if not command:
        return f"ucp app add {app} FOLDER of the manifests or the chart that it deploys"
    values = " --values FILE (with its helm.values)" if helm.get("values") else ""
    return f"{command}{values}"


def _of_helmfile(app: str, content: Mapping[str, Any]) -> str:
    addresses = {
        str(each.get("name")): f"{'oci://' if each.get('oci') is True else ''}{each.get('url')}"
        for each in maps(content, "repositories")
    }
    for each in maps(content, "releases"):
        repo, slash, chart = str(each.get("chart")).rpartition("/")
        name = str(each.get("name"))
        chosen = chart if slash and repo in addresses else each.get("chart")
        command = _chart(
            name if _NAME.fullmatch(name) else app, addresses.get(repo), chosen, each.get("version")
        )
        if command:
            return f"{command} (each of its releases so, values by --values FILE)"
    return f"helmfile template > FILE.yaml; then: ucp app add {app} FILE.yaml"


def _of_kluctl(app: str, _: Mapping[str, Any]) -> str:
    return f"kluctl render -t TARGET --print-all > FILE.yaml; then: ucp app add {app} FILE.yaml"


def _of_skaffold(app: str, _: Mapping[str, Any]) -> str:
    return f"ucp app add {app} FOLDER of the manifests or the chart that it deploys"


def _of_timoni(app: str, _: Mapping[str, Any]) -> str:
    return f"timoni build NAME FOLDER > FILE.yaml; then: ucp app add {app} FILE.yaml"


def _of_cue(app: str, _: Mapping[str, Any]) -> str:
    return f"write its objects to a file (`cue export --out yaml`), then: ucp app add {app} FILE"


def _of_cdk8s(app: str, _: Mapping[str, Any]) -> str:
    return f"cdk8s synth; then: ucp app add {app} dist"


def _of_dhall(app: str, _: Mapping[str, Any]) -> str:
    return f"dhall-to-yaml --file FILE.dhall > FILE.yaml; then: ucp app add {app} FILE.yaml"


def _of_compose(app: str, _: Mapping[str, Any]) -> str:
    return (
        "Docker Compose files describe no objects of Kubernetes: convert them (`kompose convert -o "
        f"DIR`) and choose that folder, or add each image by `ucp app add {app} IMAGE:TAG`"
    )


def _chart(app: str, repo: Any, chart: Any, version: Any) -> str:
    """The command for a chart in a repository or registry; empty if none is named."""
    address, name = str(repo or ""), str(chart or "")
    if address.startswith("oci://"):
        address, name = "", f"{address.rstrip('/')}/{name}"
    remote = address.startswith("https://") and re.fullmatch(r"[\w.-]+", name)
    if not remote and not name.startswith("oci://"):
        return ""
    words = ["ucp", "app", "add", app, "--chart", name]
    words += ["--repo", address] if remote else []
    # A version that only a template knows is left out: the newest one is taken.
    words += ["--version", str(version)] if version and "{{" not in str(version) else []
    return " ".join([*words[:4], *map(shlex.quote, words[4:])])


_TOOLS: tuple[tuple[str, re.Pattern[str], bool, Advice], ...] = (
    (FLEET, re.compile(r"(?:.*/)?fleet\.ya?ml"), True, _of_fleet),
    (
        "helmfile",
        re.compile(r"(?:.*/)?(?:helmfile|helmfile\.d/[^/]+)\.ya?ml(?:\.gotmpl)?"),
        True,
        _of_helmfile,
    ),
    ("Kluctl", re.compile(r"(?:.*/)?\.kluctl\.ya?ml"), True, _of_kluctl),
    ("Skaffold", re.compile(r"(?:.*/)?skaffold\.ya?ml"), False, _of_skaffold),
    ("Tilt", re.compile(r"(?:.*/)?Tiltfile"), False, _of_skaffold),
    ("Garden", re.compile(r"(?:.*/)?(?:[^/]+\.)?garden\.ya?ml"), False, _of_skaffold),
    ("DevSpace", re.compile(r"(?:.*/)?devspace\.ya?ml"), False, _of_skaffold),
    ("Timoni", re.compile(r"(?:.*/)?timoni\.cue"), False, _of_timoni),
    (CUE, re.compile(r"(?:.*/)?cue\.mod/module\.cue"), False, _of_cue),
    ("cdk8s", re.compile(r"(?:.*/)?cdk8s\.ya?ml"), False, _of_cdk8s),
    (
        "Docker Compose",
        re.compile(r"(?:.*/)?(?:docker-)?compose(?:[._-][^/]*)?\.ya?ml"),
        False,
        _of_compose,
    ),
    ("Dhall", re.compile(r"(?:.*/)?[^/]+\.dhall"), False, _of_dhall),
)

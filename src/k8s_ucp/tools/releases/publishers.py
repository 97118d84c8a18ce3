"""Releases of upstream projects: URLs, checksums and contents.

{version}, {os} (linux, darwin) and {arch} (amd64, arm64) in URLs are replaced. To move a pin, see
tools/catalogue.py; then `make lock-releases` records the new checksums, if the network allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

LINUX = ("linux/amd64", "linux/arm64")
ALL = (*LINUX, "darwin/amd64", "darwin/arm64")


@dataclass(frozen=True)
class Asset:
    """One file of a release."""

    url: str
    checksums: str
    """The publisher's: a bare hash, lines of `<hash>  <file>`, or GitHub's JSON of a release."""
    programs: Mapping[str, str]
    """Program -> its path in the archive; empty if the file is the program."""
    platforms: tuple[str, ...] = ALL

    def on(self, version: str, platform: str) -> Asset:
        """With all placeholders replaced."""
        system, _, machine = platform.partition("/")

        def fill(text: str) -> str:
            return text.format(version=version, os=system, arch=machine)

        return Asset(
            fill(self.url),
            fill(self.checksums),
            {name: fill(path) for name, path in self.programs.items()},
            (platform,),
        )

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Release:
    """A publisher's release of one tool."""

    assets: tuple[Asset, ...]
    exposed: tuple[str, ...] = ()
    """Listeners that no flag binds to loopback; our builds from source do."""

    def on(self, version: str, platform: str) -> tuple[Asset, ...]:
        """The files for a platform; empty if there is no release for it."""
        return tuple(
            each.on(version, platform) for each in self.assets if platform in each.platforms
        )


def published_checksum(text: str, file: str) -> str | None:
    """The published sha256 of a file; None if there is none."""
    if text.lstrip().startswith("{"):
        return _digest_on_github(text, file)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and len(lines[0]) == 1:
        return _sha256(lines[0][0])
    for words in lines:
        if len(words) == 2 and words[1].lstrip("*").rpartition("/")[2] == file:
            return _sha256(words[0])
    return None


def _digest_on_github(text: str, file: str) -> str | None:
    try:
        assets = json.loads(text)["assets"]
        digests = {each["name"]: each.get("digest") for each in assets}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    kind, _, value = str(digests.get(file)).partition(":")
    return _sha256(value) if kind == "sha256" else None


def _sha256(text: str) -> str | None:
    return text.lower() if re.fullmatch("[0-9a-fA-F]{64}", text) else None


_GITHUB = "https://github.com/{}/releases/download"
_DL = "https://dl.k8s.io/v{version}/bin/{os}/{arch}"
_ARGOCD = _GITHUB.format("argoproj/argo-cd") + "/v{version}"
_CROSSPLANE = "https://releases.crossplane.io/stable/v{version}/bin/{os}_{arch}/crossplane"
_KWOK = _GITHUB.format("kubernetes-sigs/kwok") + "/v{version}"
_KUSTOMIZE = _GITHUB.format("kubernetes-sigs/kustomize") + "/kustomize%2Fv{version}"
_ETCD = _GITHUB.format("etcd-io/etcd") + "/v{version}"
_KIND = _GITHUB.format("kubernetes-sigs/kind") + "/v{version}/kind-{os}-{arch}"
_HELM = "https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz"

KUBERNETES = Release(
    tuple(
        Asset(f"{_DL}/{name}", f"{_DL}/{name}.sha256", {name: ""}, platforms)
        for name, platforms in (
            ("kube-apiserver", LINUX),
            ("kube-controller-manager", LINUX),
            ("kube-scheduler", LINUX),
            ("kubectl", ALL),
        )
    )
)
ARGOCD = Release(
    (Asset(f"{_ARGOCD}/argocd-{{os}}-{{arch}}", f"{_ARGOCD}/cli_checksums.txt", {"argocd": ""}),),
    exposed=("metrics port of Argo CD's application controller",),
)
CROSSPLANE = Release(
    (Asset(_CROSSPLANE, f"{_CROSSPLANE}.sha256", {"crossplane": ""}),),
    exposed=("metrics port of Crossplane", "health port of Crossplane"),
)
# kwok publishes no checksums; GitHub has those of the uploaded files.
KWOK = Release(
    tuple(
        Asset(
            f"{_KWOK}/{name}-{{os}}-{{arch}}",
            "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{version}",
            {name: ""},
        )
        for name in ("kwok", "kwokctl")
    )
)
ETCD = Release(
    (
        Asset(
            f"{_ETCD}/etcd-v{{version}}-{{os}}-{{arch}}.tar.gz",
            f"{_ETCD}/SHA256SUMS",
            {"etcd": "etcd-v{version}-{os}-{arch}/etcd"},
            LINUX,
        ),
    )
)
KUSTOMIZE = Release(
    (
        Asset(
            f"{_KUSTOMIZE}/kustomize_v{{version}}_{{os}}_{{arch}}.tar.gz",
            f"{_KUSTOMIZE}/checksums.txt",
            {"kustomize": "kustomize"},
        ),
    )
)
KIND = Release((Asset(_KIND, f"{_KIND}.sha256sum", {"kind": ""}),))
HELM = Release((Asset(_HELM, f"{_HELM}.sha256sum", {"helm": "{os}-{arch}/helm"}),))

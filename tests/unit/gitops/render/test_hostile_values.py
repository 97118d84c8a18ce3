"""Any text in a topology is refused, or stays in the field that it was meant for.

Two tests. With validation, a hostile text is put into a value: the file is refused with a message
that names the place, or the repositories differ from those of the baseline topology in that value
only. Without validation, which the render doesn't rely on, the same must hold for every value that
isn't part of a path.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.build_many import objects
from k8s_ucp.gitops.render.repositories import Rendered, RenderInputs, render
from k8s_ucp.topology import Topology, parse

FILE = Path("/workspace/ucp.yaml")
Place = tuple[str | int, ...]

PACKAGES = {
    "providers": ["calm.example.net/provider-calm:v1.2.3"],
    "configurations": ["calm.example.net/configuration-calm:v1.2.4"],
    "functions": ["calm.example.net/function-calm:v1.2.5"],
}

# Each text is unique, so that it identifies its value in the rendered files.
CLOUDS: dict[str, Any] = {
    "domain": "calm-domain.net",
    "core": {"provider": "kind"},
    "git": {
        "provider": "url",
        "core": "https://git.example.net/calm-core.git",
        "apps": "https://git.example.net/calm-apps.git",
        "branch": "calm-branch",
    },
    "environments": [
        {
            "name": "gke-calm",
            "cluster": {
                "provider": "gke",
                "region": "calmgkeregion",
                "size": "calm-gke-size",
                "version": "1.33.1-calm.gke",
                "network": "calm-network",
            },
        },
        {
            "name": "eks-calm",
            "promotesFrom": "gke-calm",
            "cluster": {
                "provider": "eks",
                "region": "calmeksregion",
                "size": "calm-eks-size",
                "version": "1.33.1-calm.eks",
            },
        },
        {
            "name": "aks-calm",
            "cluster": {
                "provider": "aks",
                "region": "calmaksregion",
                "size": "calm-aks-size",
                "version": "1.33.1-calm.aks",
            },
        },
        {
            "name": "do-calm",
            "cluster": {
                "provider": "digitalocean",
                "region": "calmdoregion",
                "size": "calm-do-size",
                "version": "1.33.1-calm.do",
            },
        },
        {
            "name": "calm-existing",
            "cluster": {"provider": "existing", "context": "calm-context"},
        },
    ],
    "apps": [
        {
            "name": "calm-web",
            "image": "calm.example.net/web",
            "tag": "calm-tag",
            "hosts": ["calm-host"],
            "database": "calmquotes",
        },
        {
            "name": "calm-far",
            "repo": "https://git.example.net/calm-elsewhere.git",
            "path": "calm/path",
            "revision": "calm-revision",
            "hosts": ["calm-outer-host"],
            "database": "calmorders",
        },
    ],
    "databases": [
        {"name": "calmquotes", "provider": "gcp", "region": "calmsqlregion", "version": "15"},
        {"name": "calmorders", "provider": "aws", "region": "calmrdsregion", "version": "14"},
    ],
    "mirrors": [
        {
            "name": "calm-mirror",
            "source": {"namespace": "calm-source", "name": "calm-secret"},
            "targets": {
                "namespace": "calm-target",
                "environments": ["gke-calm"],
                "name": "calm-copy",
                "keys": {"to-calm-key": "from-calm-key"},
            },
        },
        {
            "name": "selected-calm",
            "source": {"namespace": "selected-source", "labels": {"calm-label": "calm-value"}},
            "targets": {"namespace": "selected-target"},
        },
    ],
    "addons": {"ingress": "traefik", "external-dns": True, "velero": True},
    "guardRails": {"eks-calm": "deny"},
    "reconciler": {
        "image": f"calm.example.net/ucp@sha256:{'a' * 64}",
        "sourceNamespaces": ["ucp-clusters", "more-calm"],
        "tokenLifetime": "25h",
    },
    "crossplane": {
        "pollInterval": "61s",
        "syncInterval": "62s",
        "packages": PACKAGES,
    },
    "credentials": {"gcp": {"file": "creds/calm.json", "project": "calm-project"}},
    "ci": {
        "provider": "github",
        "install": f"https://git.example.net/calm.whl#sha256={'b' * 64}",
    },
}
LOCAL: dict[str, Any] = {
    "core": {"provider": "embedded"},
    "git": {
        "provider": "url",
        "core": "https://git.example.net/calm-core.git",
        "apps": "git@git.example.net:calm-apps.git",
        "branch": "calm/branch",
    },
    "environments": [
        {"name": "one-calm", "cluster": {"provider": "embedded"}},
        {"name": "two-calm", "cluster": {"provider": "kind", "version": "1.33.1-calm"}},
    ],
    "apps": [{"name": "calm-own", "path": "calm/own", "hosts": ["calm-host"]}],
    "databases": [{"name": "calmpad", "provider": "local"}],
    "addons": {"ingress": "gateway", "argo-rollouts": True},
    "ci": {
        "provider": "gitlab",
        "install": f"https://git.example.net/calm.whl#sha256={'b' * 64}",
    },
}
WORLDS = {"clouds": CLOUDS, "local": LOCAL}
OWN = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

CHOICES = frozenset(["provider", "ingress", "eks-calm"])
"""Keys whose values are enumerations: anything else is refused."""
COUNTED = frozenset(["pollInterval", "syncInterval", "tokenLifetime"])
GITLAB = ("apps/ci/release.yml", "apps/.gitlab-ci.yml")
"""Files where $ starts a variable, so that a $ in a value is written as $$."""
MADE_INTO_OTHERS = (
    COUNTED
    | {"region", "version", "calmquotes", "calmorders", "calmpad"}
    | {each for references in PACKAGES.values() for each in references}
)
"""Keys and values that are shortened, completed or converted before they are written."""

TOKENS = st.sampled_from(
    [
        *("\n", "\r\n", "\nkind: Secret\n", "\n---\n", "\t", "\x00", "\x85", "\u2028", "\ufeff"),
        *('"', "'", "\\", ": ", " #", "#", "- ", "*a", "&a", "!!x", "%", "@", "`", "|", ">", "?"),
        *("{}", "[]", ",", "{{ .name }}", "{{", "}}", "<< x >>", "<% x %>", "${{ github.token }}"),
        *(
            "$(id)",
            "`id`",
            "$HOME",
            "$$",
            "$[[ inputs.app ]]",
            ";id",
            "&&id",
            "|id",
            "$UCP_GIT_TOKEN",
        ),
        *("../", "/../..", "/", "//", "..", ".", "~", " ", "-", "--upload-pack=x", "?ref=main"),
        *("kustomization", "kustomization.yaml", "README", "core", "default", "kube-system"),
        *("monitoring", "null", "true", "1e3", "\U0001f600", "é", "x" * 300, "://", "user:pw@"),
    ]
)


def written(spec: dict[str, Any]) -> str:
    content = {
        "apiVersion": "k8s-ucp.io/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "calm"},
        "spec": spec,
    }
    return json.dumps(content)


def texts(part: Any, at: Place = ()) -> Iterator[Place]:
    """Paths to the texts of a spec; a final "" means the key itself."""
    if isinstance(part, dict):
        for key, value in part.items():
            if at and at[-1] in ("labels", "keys"):
                yield (*at, key, "")
            yield from texts(value, (*at, key))
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from texts(value, (*at, index))
    elif isinstance(part, str) and not CHOICES & set(at) and part != "ucp-clusters":
        yield at


def at_place(part: Any, place: Place) -> Any:
    return functools.reduce(lambda found, key: found[key], place, part)


def calm_text(spec: Any, place: Place) -> str:
    return str(place[-2] if place[-1] == "" else at_place(spec, place))


def everywhere(part: Any, old: str, new: str) -> Any:
    """The spec with `old` replaced by `new`, including all references to it."""
    if isinstance(part, dict):
        return {
            new if key == old else key: everywhere(value, old, new) for key, value in part.items()
        }
    if isinstance(part, list):
        return [everywhere(each, old, new) for each in part]
    return new if part == old else part


def rendered(topology: Topology) -> Rendered:
    git = topology.spec.git
    own = {each.name: {"a.yaml": OWN} for each in topology.spec.apps if each.form == "path"}
    inputs = RenderInputs(
        machine="m",
        core_url=git.core or "",
        apps_url=git.apps or "",
        topology_file=b"",
        manifests=own,
        reconciler_image=topology.spec.reconciler.image or "",
    )
    return render(topology, inputs)


@functools.cache
def calm(world: str) -> tuple[Topology, Rendered]:
    topology = parse(written(WORLDS[world]), FILE)
    return topology, rendered(topology)


PLACES = [(world, place) for world, spec in WORLDS.items() for place in texts(spec)]


@st.composite
def hostile(draw: st.DrawFn, text: str) -> str:
    """A hostile text that replaces the given one or is inserted into it."""
    token = draw(TOKENS)
    if draw(st.booleans()):
        return token
    where = draw(st.integers(0, len(text)))
    return text[:where] + token + text[where:]


def files(found: Rendered) -> dict[str, bytes]:
    return {
        f"{name}/{path}": content
        for name in ("core", "apps")
        for path, content in getattr(found, name).items()
    }


def readings(path: str, content: bytes) -> list[Any]:
    """The documents of a file as its readers parse them, including patches (YAML in YAML)."""
    found: list[Any] = objects(content.decode())
    if path.endswith("kustomization.yaml"):
        for each in found[0].get("patches") or ():
            if "patch" in each:
                each["patch"] = objects("patch:\n" + each["patch"])
    return found


@functools.cache
def calm_readings(world: str, path: str) -> Any:
    return readings(path, files(calm(world)[1])[path])


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


def shapes(documents: list[Any]) -> list[str]:
    return sorted(str(shape(each)) for each in documents if each["kind"] != "Namespace")


def with_text(value: Any, old: str, new: str) -> Any:
    """The baseline value with only the text replaced."""
    if isinstance(value, dict):
        return {with_text(key, old, new): with_text(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [with_text(each, old, new) for each in value]
    return value.replace(old, new) if isinstance(value, str) else value


def assert_stays(world: str, key: str, old: str, new: str, found: Rendered) -> None:
    """Assert that both repositories differ from the baseline in one value only."""
    before = files(calm(world)[1])
    after = files(found)
    names = {path.replace(old, new): path for path in before}
    assert after.keys() == names.keys()
    for path, content in after.items():
        calm_path = names[path]
        if content == before[calm_path] or not path.endswith((".yaml", ".yml")):
            continue
        now, then = readings(path, content), calm_readings(world, calm_path)
        if {key, old} & MADE_INTO_OTHERS:
            assert shape(now) == shape(then), path
        elif path.startswith("core/platform/reconciler/"):
            # Ordered by namespace, and without namespaces that something else creates.
            assert shapes(now) == shapes(then), path
        elif path in GITLAB:
            assert now == with_text(then, old, new.replace("$", "$$")), path
        else:
            assert now == with_text(then, old, new), path


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_hostile_value_is_refused_or_stays_in_its_field(data: st.DataObject) -> None:
    world, place = data.draw(st.sampled_from(PLACES))
    old = calm_text(WORLDS[world], place)
    new = data.draw(hostile(old))
    try:
        topology = parse(written(everywhere(WORLDS[world], old, new)), FILE)
    except UsageError as error:
        assert "ucp.yaml:1: " in error.message
        assert all(each.isprintable() for each in error.message.replace("\n", ""))
        return
    for text in ("{{", "$", "\n", "`"):
        assert text not in new, f"{place} takes {new!r}"
    key = next(str(each) for each in reversed(place) if isinstance(each, str) and each)
    assert_stays(world, key, old, new, rendered(topology))


def changed(part: Any, place: Place, value: str) -> Any:
    """The topology with one value replaced, without validation."""
    if not place:
        return value
    key, *rest = place
    if isinstance(part, tuple):
        index = int(key)
        return (*part[:index], changed(part[index], tuple(rest), value), *part[index + 1 :])
    if isinstance(part, dict):
        return {**part, key: changed(part[key], tuple(rest), value)}
    fields = {field.alias or name: name for name, field in type(part).model_fields.items()}
    name = fields[str(key)]
    return part.model_copy(update={name: changed(getattr(part, name), tuple(rest), value)})


PATHS = frozenset(["name", "database", "promotesFrom", "environments", "sourceNamespaces", ""])
"""Last elements of places whose values are parts of paths, or refer to such values."""


def is_unguarded(place: Place) -> bool:
    words = [each for each in place if isinstance(each, str)]
    if words[-2:] in (["source", "name"], ["targets", "name"]):
        return True
    return not {words[-1], place[-1]} & (PATHS | COUNTED)


UNGUARDED = [(world, place) for world, place in PLACES if is_unguarded(place)]

ANY = st.text(
    st.one_of(
        st.sampled_from("\n\r\t\"'\\:#{}[]<>%&*!|,-?@`~=$ \u2028\ufeff\x00\x85"), st.characters()
    ),
    min_size=1,
    max_size=40,
).filter(lambda text: "{{" not in text and not any("\ud800" <= each <= "\udfff" for each in text))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_value_that_was_not_validated_stays_in_its_field(data: st.DataObject) -> None:
    world, place = data.draw(st.sampled_from(UNGUARDED))
    old = calm_text(WORLDS[world], place)
    new = data.draw(ANY)
    topology = changed(calm(world)[0], ("spec", *place), new)
    assert_stays(world, str(place[-1]), old, new, rendered(topology))

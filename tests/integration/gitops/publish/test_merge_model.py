"""Property tests of the merge: no edit of a person is lost, and no tag changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from k8s_ucp.git.objects import blob_id
from k8s_ucp.gitops.publish.merge import Choices, Scope, merge
from k8s_ucp.gitops.publish.target import merge_text
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.topology import App, Environment, Topology
from tests.unit.gitops.topologies import FACTS, demo

ENVIRONMENTS = ("stage", "prod", "eu", "qa")
APPS = ("echo", "quote")
_TAG = re.compile(rb"^    newTag: (.+)$", re.MULTILINE)

Files = dict[str, bytes]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    names = draw(st.lists(st.sampled_from(ENVIRONMENTS), unique=True, max_size=4))
    environments = []
    for place, name in enumerate(names):
        first = names[place - 1] if place and draw(st.booleans()) else None
        state = draw(st.sampled_from(["running", "running", "stopped"]))
        entry = {"name": name, "promotesFrom": first, "state": state}
        environments.append(Environment.model_validate(entry))
    apps = [
        App(
            name=name,
            image=f"example/{name}",
            tag=draw(st.sampled_from(["1", "2"])),
            hosts=draw(st.sampled_from([(), ("a",), ("a", "b")])),
            replicas=draw(st.integers(1, 3)),
        )
        for name in draw(st.lists(st.sampled_from(APPS), unique=True, max_size=2))
    ]
    domain = draw(st.sampled_from(["example.org", "example.com"]))
    return demo(environments=tuple(environments), apps=tuple(apps), domain=domain)


@dataclass
class Person:
    """Changes of people in one repository since the last render."""

    files: Files
    added: Files = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    marks: dict[str, list[bytes]] = field(default_factory=dict)

    def push_tag(self, path: str, number: int) -> None:
        text = _TAG.sub(b'    newTag: "pushed-%d"' % number, self.files[path])
        self.files[path] = text

    def mark(self, path: str, line: int, number: int) -> None:
        """Add a comment on a line of its own."""
        lines = self.files[path].split(b"\n")
        mark = b"# mine %d" % number
        lines.insert(line % len(lines), mark)
        self.files[path] = b"\n".join(lines)
        self.marks.setdefault(path, []).append(mark)

    def delete(self, path: str) -> None:
        del self.files[path]
        self.marks.pop(path, None)
        if path not in self.added:
            self.deleted.add(path)
        self.added.pop(path, None)

    def add(self, number: int) -> None:
        path = f"mine/{number}.yaml"
        self.files[path] = self.added[path] = b"mine: %d\n" % number

    def add_environment(self, name: str, repository: str) -> None:
        """Copy another environment, as `ucp env add` would."""
        lists = {"core": "clusters/kustomization.yaml", "apps": "environments.yaml"}
        for path in [each for each in self.files if "overlays/stage/" in each]:
            target = path.replace("stage", name)
            if target not in self.files and target not in self.deleted:
                self.files[target] = self.files[path].replace(b"stage", name.encode())
                self.added[target] = self.files[target]
        text = self.files.get(lists[repository], b"")
        for line in text.split(b"\n"):
            new = line.replace(b"stage", name.encode())
            if b"stage" in line and not line.startswith(b"#") and new not in text:
                self.files[lists[repository]] = text = text.replace(line, line + b"\n" + new)


@st.composite
def edited(draw: st.DrawFn, files: Files, repository: str) -> Person:
    person = Person(dict(files))
    for number in range(draw(st.integers(0, 5))):
        paths = sorted(path for path in person.files if path != "ucp.yaml")
        overlays = [path for path in paths if _TAG.search(person.files[path])]
        path = draw(st.sampled_from(paths))
        match draw(st.sampled_from(["tag", "tag", "mark", "delete", "add", "environment"])):
            case "tag" if overlays:
                person.push_tag(draw(st.sampled_from(overlays)), number)
            case "mark":
                person.mark(path, draw(st.integers(1, 60)), number)
            case "delete":
                person.delete(path)
            case "add":
                person.add(number)
            case "environment":
                person.add_environment(draw(st.sampled_from(["eu", "qa", "us"])), repository)
            case _:
                pass
    return person


def known(topology: Topology) -> Scope:
    return Scope(
        frozenset(each.name for each in topology.spec.environments),
        frozenset(each.name for each in topology.spec.apps),
    )


def bring(base: Files, ours: Files, theirs: Files, topology: Topology) -> tuple[Files, set[str]]:
    """The merged files, and the paths where a conflict was resolved with the repository's side."""
    store = {blob_id(text): text for side in (base, ours) for text in side.values()}

    def contents(ids: Iterable[str]) -> dict[str, bytes]:
        return {id: store[id] for id in ids}

    def once(choices: Choices):  # type: ignore[no-untyped-def]
        return merge(
            {path: blob_id(text) for path, text in base.items()},
            {path: blob_id(text) for path, text in ours.items()},
            theirs,
            scope=known(topology),
            contents=contents,
            merge_text=merge_text,
            choices=choices,
        )

    merged = once(Choices())
    asked = {each.path for each in merged.conflicts}
    if asked:
        merged = once(Choices(ours=frozenset(asked)))
    assert not merged.conflicts
    result = dict(ours)
    for path, text in merged.changes.items():
        if text is None:
            del result[path]
        else:
            result[path] = text
    return result, asked


def tags(files: Files) -> dict[str, list[bytes]]:
    return {path: _TAG.findall(text) for path, text in files.items() if _TAG.search(text)}


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data(), topologies(), topologies(), st.sampled_from(["core", "apps"]))
def test_no_edit_of_a_person_is_lost(
    data: st.DataObject, first: Topology, second: Topology, repository: str
) -> None:
    base: Files = getattr(render(first, FACTS), repository)
    theirs: Files = getattr(render(second, FACTS), repository)
    person = data.draw(edited(base, repository))
    ours = person.files
    result, asked = bring(base, ours, theirs, second)
    note(f"asked about {asked}")

    for path, text in person.added.items():
        if path not in person.marks and path not in theirs:
            assert result[path] == ours[path] or text != ours[path], path
    assert not person.deleted & result.keys()
    for path, marks in person.marks.items():
        for mark in marks:
            assert mark in result[path].split(b"\n"), path
    before = tags(ours)
    for path, found in tags(result).items():
        if path in before:
            assert found == before[path], path
    for path, text in theirs.items():
        if path in ours and ours[path] == base.get(path) and path not in before:
            assert result[path] == text or _is_list(path), path
        if path not in ours and path not in base:
            assert result[path] == text, path
    for path in ours:
        if "/overlays/" in path:
            name = path.split("/overlays/")[1].split("/")[0]
            assert name in known(second).environments or path in result, path

    again, asked_again = bring(theirs, result, theirs, second)
    assert again == result
    assert asked_again == set()


def _is_list(path: str) -> bool:
    """These lists differ from the render, because environments of the repository stay listed."""
    return path in ("clusters/kustomization.yaml", "environments.yaml")

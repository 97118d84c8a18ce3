"""A repository in memory, for decisions and landings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_ucp.git.failures import Rejected
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.promotion.decision import Decision

IMMEDIATE = Pace(sleep=lambda _: None)


def kustomization(**tags: str) -> str:
    """A kustomization with images of these names and tags."""
    lines = [f"- name: {name}\n  newTag: {tag!r}\n" for name, tag in tags.items()]
    return "resources: [../../base]\nimages:\n" + "".join(lines)


@dataclass(frozen=True)
class MemoryTip:
    """A commit with its files."""

    content: Mapping[str, bytes]
    commit: str = "c0"

    def read(self, path: str) -> bytes | None:
        return self.content.get(path)

    def files(self, path: str) -> list[str]:
        return sorted(each[len(path) + 1 :] for each in self.content if each.startswith(path + "/"))

    def folders(self, path: str) -> list[str]:
        inside = [each[len(path) + 1 :] for each in self.content if each.startswith(path + "/")]
        return sorted({each.split("/")[0] for each in inside if "/" in each})

    def text(self, path: str) -> str:
        return self.content[path].decode()


def tip(files: Mapping[str, str]) -> MemoryTip:
    return MemoryTip({path: text.encode() for path, text in files.items()})


def shop(**tags: str) -> MemoryTip:
    """One app, echo, with one image, echo, in these environments at these tags."""
    return tip(
        {f"apps/echo/overlays/{env}/kustomization.yaml": kustomization(echo=tag)
         for env, tag in tags.items()}
    )  # fmt: skip


@dataclass
class MemoryBranch:
    """A branch that accepts a push only on top of its newest commit, as every git host does.

    between: called before each push is evaluated, so that rivals can push first.
    """

    history: list[MemoryTip]
    between: Callable[[], None] = lambda: None
    pushes: int = 0
    _pending: dict[str, tuple[str, MemoryTip]] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=lambda: [0])

    def fetch(self) -> MemoryTip:
        return self.history[-1]

    def commit(
        self, tip: MemoryTip, writes: Mapping[str, bytes], decisions: Sequence[Decision]
    ) -> str:
        self.numbers[0] += 1
        name = f"c{self.numbers[0]}"
        self._pending[name] = (tip.commit, MemoryTip({**tip.content, **writes}, name))
        return name

    def push(self, commit: str) -> None:
        self.between()
        self.pushes += 1
        parent, new = self._pending[commit]
        if parent != self.history[-1].commit:
            raise Rejected("fetch first")
        self.history.append(new)

    def has(self, tip: MemoryTip, commit: str) -> bool:
        return any(each.commit == commit for each in self.history)

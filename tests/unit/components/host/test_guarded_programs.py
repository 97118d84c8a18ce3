"""What the kustomize in front of the real one decides by itself, and what it leaves to Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from k8s_ucp.components.host.guarded_programs import write_kustomize
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.sources import find_outside


class Guard:
    """The script of a repository, with programs that only tell that they were run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkouts/one"
        self.overlay, self.base = self.root / "apps/web/stage", self.root / "apps/base"
        for each in (self.overlay, self.base, folder / "private", self.root / ".git/x"):
            each.mkdir(parents=True)
        self.write(self.base, "resources: [x.yaml]\n")
        (self.base / "x.yaml").write_text("data: {it: ../../../../../private}\n")
        (self.root / ".git/link").symlink_to(folder)
        (folder / "guard").mkdir(mode=0o700)
        self.script = write_kustomize(folder / "guard", Path("/bin/echo"), "") / "kustomize"

    def write(self, folder: Path, content: bytes | str, name: str = "kustomization.yaml") -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def asks_python(self, folder: str = "") -> bool:
        words = ["/bin/sh", str(self.script), "build", folder or str(self.overlay)]
        done = subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout[:5]) in ((0, "build"), (1, "")), done
        return done.returncode == 1


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    folder = tmp_path_factory.mktemp("kustomize").resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        return Guard(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Base, with 100 of it.\nresources:\n  - ../../base\n".replace("%", ""),
        "resources:\n- ../../../apps/base\n- deployment.yaml\n",
        '---\ncomponents: [a, b]\npatches:\n  - target: {name: ".*-a"}\n    patch: |-\n      - a\n',
    ],
)
def test_a_plain_kustomization_needs_no_python(guard: Guard, text: str) -> None:
    guard.write(guard.overlay, text)
    assert not guard.asks_python()


OUTSIDE = "../../../../../private"
ESCAPED = "\\x2e\\x2e/" * 5 + "private"


@pytest.mark.parametrize(
    "content",
    [
        f"resources:\n  - {OUTSIDE}\n",
        f"resources: [{OUTSIDE}]\n",
        f'resources: ["{ESCAPED}"]\n',
        f"resources:\n  - '{OUTSIDE}'\n",
        f"resources:\n  - {OUTSIDE}  # comment\n",
        f"resources:\n  - >-\n    {OUTSIDE}\n",
        f"resources:\n  - |-\n    {OUTSIDE}\n",
        f"resources:\n  - - {OUTSIDE}\n",
        f"Bases:\n  - {OUTSIDE}\n",
        f'"\\u0062ases":\n  - {OUTSIDE}\n',
        f"a: 1\n---\nresources:\n  - {OUTSIDE}\n",
        f"resources:\r\n  - {OUTSIDE}\r\n",
        f"resources:\r  - {OUTSIDE}\r",
        f"resources:\n  -\t{OUTSIDE}\n",
        f"resources:\n  - ./{OUTSIDE}\n",
        f"resources:\n  - x/../{OUTSIDE}\n",
        "resources:\n  - ../../../x/../../../private\n",
        "resources:\n  - ../../../..\n",
        "resources:\n  - ..\n",
        "resources:\n  - ../../../\n    ../../private\n",
        'resources:\n  - ".\\\n    ./../../../../private"\n',
        "resources:\n  - !!binary Li4vLi4vLi4vLi4vLi4vcHJpdmF0ZQ==\n",
        "%TAG ! tag:yaml.org,2002:\n---\nresources: [x]\n",
        "a: &a x\nresources: [*a]\n",
        '{"resources": ["' + OUTSIDE + '"]}',
        "resources: [é]\n",
        f"resources: [{OUTSIDE}]\n".encode("utf-16"),
        f"resources: [{OUTSIDE}]\n".encode("utf-16-be"),
        b"\xef\xbb\xbfresources: [x]\n",
        b"resources: [\xff]\n",
        b"resources: [x\0]\n",
        "resources:\u2028- x\n",
        "resources:\n- x\n" + "# \n" * 400_000,
    ],
)
def test_whatever_could_lead_out_is_left_to_python(guard: Guard, content: bytes | str) -> None:
    guard.write(guard.overlay, content)
    assert guard.asks_python()


@pytest.mark.parametrize("name", ["kustomization.yml", "Kustomization"])
def test_every_kustomization_of_the_repository_counts(guard: Guard, name: str) -> None:
    guard.write(guard.overlay, "resources:\n- ../../base\n")
    guard.write(guard.base, "resources:\n- ../../../private\n", name)
    assert guard.asks_python()
    (guard.base / name).unlink()
    assert not guard.asks_python()


def test_links_and_other_folders_are_left_to_python(guard: Guard) -> None:
    guard.write(guard.overlay, "resources:\n- ../../base\n")
    assert guard.asks_python(str(guard.root.parent))
    assert guard.asks_python("apps/web/stage")
    assert guard.asks_python(f"{guard.overlay}/../../../../../private")
    (link := guard.root / "apps/link").symlink_to("base")
    assert guard.asks_python()
    link.unlink()
    assert not guard.asks_python()


_WORDS = (
    *("resources:", "\n", "\n- ", "\n  - ", " ", "..", "../../../../", OUTSIDE, OUTSIDE, "/", "x"),
    *("private", "base", '"', "'", "''", "[", "]", "{", "}", ",", ": ", "|-", ">", "#", "? "),
    *("\\", "\\x2e", "&a ", "*a", "!!binary ", "Li4v", "---\n", "\t", "\r", "é", "%"),
)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(_WORDS), max_size=10).map("".join))
@example("resources:\n- ../../../../../private")
def test_no_folder_outside_is_overlooked(guard: Guard, text: str) -> None:
    guard.write(guard.overlay, text)
    try:
        leads_out = find_outside(guard.overlay, guard.root) is not None
    except UsageError:
        return  # Not YAML, which kustomize refuses.
    assert not leads_out or guard.asks_python()

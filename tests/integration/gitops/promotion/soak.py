"""Record of a soak: the cases that were run with the same code, so that it can be continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.conftest import CACHE
from tests.evidence import table, write

ROOT = Path(__file__).resolve().parents[4]
CODE = (
    "src/k8s_ucp/gitops",
    "src/k8s_ucp/git",
    "src/k8s_ucp/cli",
    "tests/integration/gitops/promotion",
)

Cases = Mapping[str, Mapping[str, str]]
"""Facts by case."""


class SoakRecord:
    """Facts by case, stored in the user's cache and written as evidence after each case."""

    def __init__(
        self,
        name: str,
        title: str,
        code: tuple[str, ...] = CODE,
        *,
        told: Callable[[Cases], str] | None = None,
    ) -> None:
        """code: files and folders; a change in them invalidates the record.

        told: returns the page's text, instead of a table with a row for each case.
        """
        self._name, self._title = name, title
        self._told = told or _rows
        self._path = CACHE / "soak" / f"{name}-{_digest(code)}.json"

    def has(self, case: str) -> bool:
        return case in self._cases()

    def add(self, case: str, facts: Mapping[str, object]) -> None:
        cases = {**self._cases(), case: {key: str(value) for key, value in facts.items()}}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(cases, indent=1))
        sections = {"What was run, and what came of it": self._told(cases)}
        write(self._name, self._title, sections, command="make soak")

    def _cases(self) -> dict[str, dict[str, str]]:
        if not self._path.is_file():
            return {}
        found: dict[str, dict[str, str]] = json.loads(self._path.read_text())
        return found


def _rows(cases: Cases) -> str:
    rows = [
        (each, ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in found.items()))
        for each, found in sorted(cases.items())
    ]
    return table(["case", "counts"], rows)


def _digest(code: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in code:
        assert (ROOT / name).exists(), f"{name}: the file does not exist or folder"
        found = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*"))
        for path in found:
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]

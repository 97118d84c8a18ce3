"""The project's own modules, parsed once per worker for all tests that read them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import k8s_ucp

SOURCES = Path(k8s_ucp.__file__).parent


@cache
def modules() -> dict[str, ast.Module]:
    """{path below src/k8s_ucp: syntax tree}, sorted. Callers must not change them."""
    return {
        file.relative_to(SOURCES).as_posix(): ast.parse(file.read_text("utf-8"))
        for file in sorted(SOURCES.rglob("*.py"))
    }

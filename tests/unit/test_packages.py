"""The structure of the code: small packages, no import cycles, all dependencies declared.

Which package may import which is in pyproject.toml (`lint-imports`).
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import k8s_ucp
from tests import package_graph

SOURCE = Path(k8s_ucp.__file__).parent
CHECKOUT = Path(__file__).parents[2]
MOST = 15
DOORS = {"context", "kube", "process", "topology", "workspace"}
"""Packages whose `__init__.py` re-exports what others need."""


def test_packages_are_small() -> None:
    found = package_graph.loose_modules()
    large = {package: len(each) for package, each in found.items() if len(each) > MOST}
    assert not large, f"more than {MOST} modules: split the package by subject"


def test_folders_have_the_names_of_packages() -> None:
    for kind in ("unit", "integration"):
        root = CHECKOUT / "tests" / kind
        folders = {file.parent.relative_to(root) for file in root.rglob("test_*.py")}
        assert not [each for each in folders if not (SOURCE / each).is_dir()]


def test_no_import_cycles_between_modules() -> None:
    assert package_graph.cycle(package_graph.imports()) == []


def test_no_import_cycles_between_packages() -> None:
    packages = {each.rpartition(".")[0] for each in package_graph.modules()} - {""}
    cycles = {each: package_graph.cycle(package_graph.between(each)) for each in packages}
    assert not any(cycles.values()), {name: each for name, each in cycles.items() if each}


def test_a_package_does_not_import_its_modules() -> None:
    # `ucp --help` and the hooks take 0.1 s: importing a module loads no other of its package.
    for file in SOURCE.rglob("__init__.py"):
        package = file.parent.relative_to(SOURCE).as_posix()
        statements = [
            each
            for each in ast.parse(file.read_text("utf-8")).body
            if isinstance(each, ast.Import | ast.ImportFrom)
        ]
        assert not statements or package in DOORS, f"{package}/__init__.py imports"


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        _normal(re.split(r"[^\w.-]", each)[0])
        for each in [*project["dependencies"], *(each for extra in extras for each in extra)]
    }
    bring = packages_distributions()
    imported = {each.split(".")[0] for each in package_graph.graph().modules}
    for name in imported - sys.stdlib_module_names - {package_graph.PACKAGE}:
        # Extras may not be installed; then compare with the name of the package.
        named = {each for each in declared if each.startswith(_normal(name))}
        brought_by = {_normal(each) for each in bring.get(name, ())} or named
        assert brought_by & declared, (
            f"{name} is imported; pyproject.toml declares no package of it"
        )


def test_test_modules_share_code_through_other_modules_only() -> None:
    """Nobody looks for shared code in a module of tests."""
    imported = re.compile(r"^ *from tests[.\w]*(\.test_\w+ import| import .*\btest_\w)", re.M)
    found = [
        f"{file.relative_to(CHECKOUT)}: {each[0].strip()}"
        for file in sorted((CHECKOUT / "tests").rglob("*.py"))
        for each in imported.finditer(file.read_text("utf-8"))
    ]
    assert not found


def test_the_diagrams_show_the_current_code() -> None:
    text = package_graph.PAGE.read_text("utf-8")
    assert package_graph.page(text) == text, 'make pictures ARGS="packages"'


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

"""The shape of the code: small rooms, no circles, every import declared, pictures that are true.

Which room may import which stands in pyproject.toml (`lint-imports`).
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import k8s_ucp
from tests import rooms

SOURCE = Path(k8s_ucp.__file__).parent
CHECKOUT = Path(__file__).parents[2]
MOST = 15
DOORS = {"kube", "process", "topology"}
"""Rooms with a front: what others need of them is imported by their names."""


def test_rooms_are_small() -> None:
    large = {room: len(each) for room, each in rooms.loose_modules().items() if len(each) > MOST}
    assert not large, f"more than {MOST} loose modules: make rooms of what belongs together"


def test_tests_lie_in_folders_named_as_the_rooms() -> None:
    for kind in ("unit", "integration"):
        root = CHECKOUT / "tests" / kind
        folders = {file.parent.relative_to(root) for file in root.rglob("test_*.py")}
        assert not [each for each in folders if not (SOURCE / each).is_dir()]


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert rooms.circle(rooms.imports()) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    packages = {each.rpartition(".")[0] for each in rooms.modules()} - {""}
    circles = {each: rooms.circle(rooms.between(each)) for each in packages}
    assert not any(circles.values()), {room: each for room, each in circles.items() if each}


def test_no_room_loads_what_nobody_asked_for() -> None:
    # `ucp --help` and the hooks take a tenth of a second because an import brings one module.
    for file in SOURCE.rglob("__init__.py"):
        room = file.parent.relative_to(SOURCE).as_posix()
        statements = [
            each
            for each in ast.parse(file.read_text("utf-8")).body
            if isinstance(each, ast.Import | ast.ImportFrom)
        ]
        assert not statements or room in DOORS, f"{room}/__init__.py imports"


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        _normal(re.split(r"[^\w.-]", each)[0])
        for each in [*project["dependencies"], *(each for extra in extras for each in extra)]
    }
    bring = packages_distributions()
    imported = {each.split(".")[0] for each in rooms.graph().modules}
    for name in imported - sys.stdlib_module_names - {rooms.PACKAGE}:
        # An extra isn't installed everywhere: then the name of its package has to do.
        named = {each for each in declared if each.startswith(_normal(name))}
        brought_by = {_normal(each) for each in bring.get(name, ())} or named
        assert brought_by & declared, (
            f"{name} is imported; pyproject.toml declares no package of it"
        )


def test_the_pictures_are_of_this_code() -> None:
    text = rooms.PAGE.read_text("utf-8")
    assert rooms.page(text) == text, 'make pictures ARGS="rooms"'


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

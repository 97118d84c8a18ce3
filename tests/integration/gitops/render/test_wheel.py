"""The wheel contains the templates: it renders the same as the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[4]
SCRIPT = """
import sys, pathlib
import k8s_ucp
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render, templates_folder
sys.path.append(sys.argv[1])
from tests.unit.gitops.topologies import FACTS, demo
place = pathlib.Path(k8s_ucp.__file__).parent
assert place.is_relative_to(sys.argv[2]), place
assert templates_folder().is_relative_to(place), templates_folder()
render_to(pathlib.Path(sys.argv[3]), render(demo(), FACTS))
"""


def test_wheel_renders_the_same_as_the_checkout(tmp_path: Path) -> None:
    from k8s_ucp.gitops.publish.repositories import render_to
    from k8s_ucp.gitops.render.repositories import render
    from tests.unit.gitops.topologies import FACTS, demo

    built = tmp_path / "dist"
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(built)]
    subprocess.run([*build, str(CHECKOUT)], check=True, capture_output=True, timeout=120)
    (wheel,) = built.glob("*.whl")
    installed = tmp_path / "installed here"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(CHECKOUT), str(installed), str(tmp_path / "w")],
        env={"PYTHONPATH": str(installed)},
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    # The rendered pipelines install it with exactly these.
    locked = (installed / "k8s_ucp" / "requirements.txt").read_text()
    assert locked == (CHECKOUT / "requirements" / "promote.txt").read_text()
    render_to(tmp_path / "c", render(demo(), FACTS))
    assert _files(tmp_path / "w") == _files(tmp_path / "c")


def _files(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }

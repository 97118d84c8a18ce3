"""The command as users install it: from a built wheel, in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.world import Workbench


def install_wheel(world: Workbench, name: str, source: Path) -> None:
    """Install the world's command from the wheel of `source`, outside of the checkout.

    name: name of the virtual environment's folder, which is in the world's home.
    """
    venv = world.home / name
    wheels = venv / "wheels"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", wheels, source],
        check=True,
        capture_output=True,
    )
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    subprocess.run(
        [*pip, "install", "-q", "--no-deps", "--no-index", wheel],
        check=True,
        capture_output=True,
    )
    # The new environment uses this one's locked dependencies, so only ucp's own code differs.
    site = next((venv / "lib").glob("python*")) / "site-packages"
    here = next(Path(each) for each in sys.path if each.endswith("site-packages"))
    for entry in here.iterdir():
        if "k8s_ucp" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    where = subprocess.run(
        [python, "-c", "import k8s_ucp; print(k8s_ucp.__file__)"],
        cwd=world.home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(venv) in where
    world.command = (str(venv / "bin" / "ucp"),)
    world.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

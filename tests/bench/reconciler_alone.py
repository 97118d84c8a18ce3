"""Only registration and mirrors of the reconciler, on a bare core: `python -m ... KUBECONFIG`."""

from __future__ import annotations

import sys
from pathlib import Path

from k8s_ucp.reconciler.manager import run
from k8s_ucp.reconciler.runtime.settings import MIRRORS, REGISTRATION, Settings


def main() -> None:
    settings = Settings(
        kubeconfig=Path(sys.argv[1]),
        machine="bench",
        topology="demo",
        controllers=frozenset({REGISTRATION, MIRRORS}),
    )
    run(settings, {})


if __name__ == "__main__":
    main()

"""The catalogue of these tests, and an installer that runs in its own process.

python -m tests.integration.tools.tiny CACHE MODULES: prints one line for each phase, then the path
of the program.
"""

from __future__ import annotations

import sys
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.tools.catalogue import Edit, Tool
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import ToolProgress

TINY = Tool(
    name="tiny",
    version="1.0.0",
    programs={"tiny": "example.org/tiny/cmd/tiny"},
    module="example.org/tiny",
    variables={"main.version": "1.0.0"},
    edits=(Edit("cmd/tiny/main.go", '"0.0.0.0"', '"127.0.0.1"'),),
    keep=("manifests", "hack/run.sh"),
    megabytes=10,
)


def tell(progress: ToolProgress) -> None:
    print(progress.phase.value, progress.detail, flush=True)


def main(cache: str, modules: str) -> int:
    installer = Installer(
        Path(cache), tell, catalogue={"tiny": TINY}, modules=Path(modules), keep_build=True
    )
    try:
        print("path", installer.install(["tiny"]).path("tiny"), flush=True)
    except UcpError as error:
        print("error", error, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

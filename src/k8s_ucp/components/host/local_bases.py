"""Refuses bases outside of the repository; runs in front of Argo CD's kustomize.

kustomize takes any folder as a base, such as one with Secrets of the user who runs Argo CD. A
folder of the same repository is allowed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.sources import find_outside


def main() -> int:
    """Exit code 1, with a message like kustomize's, if the folder in the arguments is refused.

    Argo CD runs kustomize in the root of the repository.
    """
    folder = Path(sys.argv[1])
    try:
        found = find_outside(folder, Path.cwd())
    except (UsageError, OSError, RecursionError) as error:
        print(f"Error: refused: {error}", file=sys.stderr)  # noqa: T201 (for Argo CD)
        return 1
    if found:
        file, text = found
        what = f"Error: refused: {file.name} includes {text}, which is outside of the repository"
        print(what, file=sys.stderr)  # noqa: T201 (for Argo CD)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

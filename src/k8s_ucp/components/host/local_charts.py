"""Refuses charts that depend on charts of this machine; runs in front of Argo CD's helm.

helm packs the folder that a dependency names as `file://`, whatever folder that is, and a template
can show its values. A folder of the chart's own repository is allowed. The schema of its values can
name a file, too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.yaml_text import texts

_FILES = ("Chart.yaml", "Chart.lock", "requirements.yaml", "requirements.lock")
"""From which helm reads dependencies."""
_SCHEME = "file:"


def find_outside(chart: Path, checkouts: Path) -> str:
    """The first local dependency that isn't in the repository of a chart; "" if there is none.

    checkouts: folder below which Argo CD checks repositories out. Raises UsageError for invalid
    YAML, OSError.
    """
    chart = chart.resolve()
    root = _root_of(chart, checkouts.resolve())
    for file in (chart / name for name in _FILES):
        if not file.exists():
            continue
        # Any text, not only `repository`: helm ignores the case of keys.
        for text in (each.strip() for each in texts(file.read_bytes(), file.name)):
            if text.lower().startswith(_SCHEME) and not _is_below(root, chart, text):
                return text
    return ""


def _root_of(chart: Path, checkouts: Path) -> Path:
    """The top of the checkout that a chart is in; the chart itself if it is in none."""
    above = [each for each in (chart, *chart.parents) if checkouts in each.parents]
    return next((each for each in above if (each / ".git").exists()), chart)


def _is_below(root: Path, chart: Path, text: str) -> bool:
    path = text[len(_SCHEME) :].removeprefix("//")
    if path.startswith("/"):
        return False
    # As helm does: `..` is removed from the text, before symbolic links are followed.
    return Path(os.path.realpath(os.path.normpath(chart / path))).is_relative_to(root)


def _refused_by_schemas() -> int:
    from k8s_ucp.gitops.manifests.build_charts import refuse_outside_schemas

    try:
        refuse_outside_schemas(Path.cwd())
    except (UcpError, OSError) as error:
        print(f"Error: refused: {error}", file=sys.stderr)  # noqa: T201 (for Argo CD)
        return 1
    return 0


def main() -> int:
    """Exit code 1, with a message like helm's, if the chart in the working folder is refused.

    With the argument `schemas`, by the schemas of its values, else by its dependencies.
    """
    if sys.argv[1:] == ["schemas"]:
        return _refused_by_schemas()
    try:
        checkouts = Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 (as Argo CD does)
        found = find_outside(Path.cwd(), checkouts)
    except (UsageError, OSError, RecursionError) as error:
        print(f"Error: refused: its dependencies can't be read: {error}", file=sys.stderr)  # noqa: T201
        return 1
    if found:
        what = f"Error: refused: the dependency {found} is outside of the chart's repository"
        print(what, file=sys.stderr)  # noqa: T201 (for Argo CD)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

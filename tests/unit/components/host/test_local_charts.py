"""Charts that Argo CD's helm packs on this machine: only those of the chart's own repository."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from k8s_ucp.components.host.local_charts import find_outside
from k8s_ucp.errors import UsageError


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart in a checkout; `secret` is beside the checkout."""
    found = tmp_path / "checkouts/one/apps/web"
    found.mkdir(parents=True)
    (tmp_path / "checkouts/one/.git").mkdir()
    (tmp_path / "secret").mkdir()
    return found


def _found(chart: Path, text: str, name: str = "Chart.yaml") -> str:
    (chart / name).write_text(text)
    return find_outside(chart, chart.parents[2])


@pytest.mark.parametrize("path", ["../lib", "./sub", "../../charts/x/../y", "../../"])
def test_a_chart_of_the_same_repository_is_allowed(chart: Path, path: str) -> None:
    assert not _found(chart, f"dependencies: [{{name: x, repository: 'file://{path}'}}]")


def test_charts_of_registries_are_allowed(chart: Path) -> None:
    repositories = ("https://example.org/charts", "oci://example.org/x", "@stable", "")
    items = ", ".join(f"{{repository: '{each}'}}" for each in repositories)
    assert not _found(chart, f"dependencies: [{items}]\nsources: [https://example.org]")


OUTSIDE = "file://../../../../secret"


@pytest.mark.parametrize("name", ["Chart.yaml", "Chart.lock", "requirements.yaml"])
@pytest.mark.parametrize(
    "text",
    [
        f"dependencies: [{{repository: '{OUTSIDE}'}}]",
        "dependencies: [{repository: 'file:///secret'}]",
        f"dependencies: [{{REPOSITORY: '{OUTSIDE}'}}]",
        'dependencies: [{repository: "fil\\x65://../../../../secret"}]',
        f"dependencies: [{{repository: !!binary {base64.b64encode(OUTSIDE.encode()).decode()}}}]",
        f"dependencies: [{{repository: '{OUTSIDE}', repository: 'file://../lib'}}]",
        f"x: &x '{OUTSIDE}'\ndependencies: [{{repository: *x}}]",
    ],
)
def test_a_chart_outside_of_the_repository_is_found(chart: Path, name: str, text: str) -> None:
    assert _found(chart, text, name).startswith("file://")


def test_a_link_to_a_chart_outside_of_the_repository_is_found(chart: Path, tmp_path: Path) -> None:
    (chart / "sub").symlink_to(tmp_path / "secret")
    assert _found(chart, "dependencies: [{repository: 'file://sub'}]")


def test_a_chart_without_a_checkout_has_no_neighbors(chart: Path, tmp_path: Path) -> None:
    """Also if the folder of checkouts is in someone's clone, as that of a workspace may be."""
    (tmp_path / ".git").mkdir()
    (chart.parents[1] / ".git").rmdir()
    assert _found(chart, "dependencies: [{repository: 'file://../lib'}]")
    assert not _found(chart, "dependencies: [{repository: 'file://lib'}]")


def test_a_chart_that_can_not_be_read_is_refused(chart: Path) -> None:
    with pytest.raises(UsageError, match="is not valid YAML"):
        _found(chart, "dependencies: [")

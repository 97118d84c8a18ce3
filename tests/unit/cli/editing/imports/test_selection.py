"""Apps that turn out not to be addable, and what is advised then."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.imports.selection import Selection
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, NotImportable


def test_an_error_about_all_apps_says_for_each_what_to_do() -> None:
    apps = [DiscoveredApp(each, "helm", each) for each in ("api", "web", "tool")]
    selection = Selection(Discovery(tuple(apps), (), ()), explicit=False)
    for each in apps[:2]:
        selection.leave_out(each, NotImportable(f"no host for {each.name}", "check the network"))
    with pytest.raises(UsageError) as failed:
        selection.reasons()
    assert failed.value.next == "check the network"
    selection.leave_out(apps[2], NotImportable("it is a library", "add what uses it"))
    with pytest.raises(UsageError) as failed:
        selection.reasons()
    assert str(failed.value).splitlines() == [
        "api is not added: no host for api",
        "  web is not added: no host for web",
        "  next: check the network",
        "tool is not added: it is a library",
        "  next: add what uses it",
    ]

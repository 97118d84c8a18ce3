"""Charts become manifests: fetched by the real helm from a chart repository of the test."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.publish.vendor import ChartFailed, commit, vendor
from k8s_ucp.gitops.render.repositories import RenderInputs, render
from k8s_ucp.gitops.render.values import addons
from k8s_ucp.gitops.render.values.addons import Addon
from k8s_ucp.process import run
from k8s_ucp.topology import Topology
from tests.conftest import CACHE
from tests.integration.gitops.conftest import Repositories
from tests.unit.gitops.topologies import FACTS, demo

TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
data:
  owner: {{ .Values.txtOwnerId | quote }}
  policy: {{ .Values.policy | quote }}
"""
RANDOM = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: {{ randAlpha 9 }}}\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def helm() -> Path:
    from k8s_ucp.tools.installer import Installer

    return Installer(CACHE, lambda event: None).install(("helm",)).path("helm")


@pytest.fixture(scope="module")
def charts(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a repository with external-dns 1.21.1 and a chart that generates a password."""
    work = tmp_path_factory.mktemp("charts")
    served = work / "served"
    served.mkdir()
    for name, text in (("external-dns", TEMPLATE), ("random", TEMPLATE + RANDOM)):
        chart = work / name
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.21.1\n")
        (chart / "values.yaml").write_text("txtOwnerId: nobody\npolicy: nothing\n")
        (chart / "templates/all.yaml").write_text(text)
        run([helm, "package", chart, "--destination", served], timeout=60)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    url = f"http://127.0.0.1:{server.server_port}"
    run([helm, "repo", "index", served, "--url", url], timeout=60)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with contextlib.closing(server.socket):
        yield url
        server.shutdown()
        thread.join()


def topology() -> Topology:
    return demo(addons={"external-dns": True})


def chart(url: str, **changes: str) -> Addon:
    (found,) = addons.chosen(topology())
    return replace(found, repository=url, **changes)  # type: ignore[arg-type]


def vendored(url: str, helm: Path, **changes: str) -> dict[str, bytes]:
    core = render(topology(), FACTS).core
    return vendor(
        topology(), core, helm, on_progress=lambda line: None, chosen=[chart(url, **changes)]
    )


def test_chart_is_rendered_for_each_environment(charts: str, helm: Path) -> None:
    found = vendored(charts, helm)
    assert sorted(found) == [
        f"platform/external-dns/vendored/{name}/manifests.yaml" for name in ("prod", "stage")
    ]
    for path, text in found.items():
        environment = path.split("/")[3]
        assert text.startswith(b"# Rendered by k8s-ucp (`ucp render --vendor`)")
        item = YAML(typ="safe").load(text.decode())
        assert item["metadata"] == {"name": "external-dns", "namespace": "external-dns"}
        # Values of the core repository, and values that differ between clusters.
        assert item["data"] == {"owner": f"ucp-demo-{environment}", "policy": "sync"}


def test_missing_chart_is_named(charts: str, helm: Path) -> None:
    with pytest.raises(ChartFailed, match=r"external-dns 9\.9\.9 of http") as caught:
        vendored(charts, helm, version="9.9.9")
    assert "without --vendor" in caught.value.next
    with pytest.raises(ChartFailed):
        vendored("http://127.0.0.1:1", helm)


def test_chart_with_a_generated_password_is_refused(charts: str, helm: Path) -> None:
    with pytest.raises(ChartFailed, match="renders differently each time"):
        vendored(charts, helm, chart="random")


def test_rendered_chart_is_committed_and_kept(charts: str, helm: Path, world: Repositories) -> None:
    world.start(topology())
    facts = RenderInputs(
        machine=FACTS.machine,
        core_url=world.folder.core_remote.as_uri(),
        apps_url=world.folder.apps_remote.as_uri(),
        topology_file=world.files("core")["ucp.yaml"],
        engine=FACTS.engine,
        versions=FACTS.versions,
    )
    before = render(topology(), facts).core
    found = vendored(charts, helm)
    after = render(topology(), replace(facts, vendored=found)).core
    changed = commit(topology(), world.folder, before, after, None)
    application = "bootstrap/embedded/external-dns.yaml"
    assert changed == sorted([application, *found])
    assert commit(topology(), world.folder, before, after, None) == []
    # The next start renders the Applications of charts again, and keeps what was committed.
    world.start(topology())
    tip = world.files("core")
    assert {path: tip[path] for path in found} == found
    assert tip[application] == after[application]


def test_edited_application_is_refused(charts: str, helm: Path, world: Repositories) -> None:
    world.start(topology())
    path = "bootstrap/embedded/external-dns.yaml"
    world.edit("core", path, "maxDuration: 3m", "maxDuration: 9m")
    before = {path: world.files("core")[path].replace(b"9m", b"3m")}
    with pytest.raises(UcpError, match="edits would be lost"):
        commit(topology(), world.folder, before, {path: b"kind: Application\n"}, None)

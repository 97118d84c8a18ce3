"""A Helm chart repository over HTTP and an OCI registry, on loopback: the minimum that helm needs.

The repository serves `index.yaml` and packaged charts; the registry answers GET and HEAD for tags,
manifests and blobs (OCI distribution). Both can require a user name and a password.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

USER, PASSWORD = "reader", "ch4rt-s3cret"


def pack(name: str, files: Mapping[str, str]) -> bytes:
    """Package a chart.

    Without the time: charts stay in the user's cache by URL, and another run may get the same port.
    """
    stream = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as packed,
    ):
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(text.encode())
            packed.addfile(entry, io.BytesIO(text.encode()))
    return stream.getvalue()


def web_chart(version: str, *, name: str = "web", more: Mapping[str, str] | None = None) -> bytes:
    """A packaged chart with a Deployment whose image and replicas are values."""
    return pack(name, {**web_files(version, name=name), **(more or {})})


def web_files(version: str, *, name: str = "web") -> dict[str, str]:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n",
        "values.yaml": 'replicas: 1\nimage: {repository: example.org/web, tag: "1.0.0"}\n',
        "templates/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  labels: {chart: "{{ .Chart.Version }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
""",
    }


@dataclass
class Charts:
    """Content and request log of both servers. charts: {(name, version): packaged chart}."""

    charts: dict[tuple[str, str], bytes] = field(default_factory=dict)
    private: bool = False
    asked: list[str] = field(default_factory=list)
    """Requested paths, in order."""
    port: int = 0

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}/charts"

    @property
    def oci(self) -> str:
        return f"oci://127.0.0.1:{self.port}/charts"

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return (content type, body), or None for not found."""
        if path == "/charts/index.yaml":
            return "application/yaml", self._index()
        if path.startswith("/charts/"):
            name, _, version = path[8:].removesuffix(".tgz").rpartition("-")
            found = self.charts.get((name, version))
            return ("application/gzip", found) if found else None
        if path in ("/v2", "/v2/"):
            return "application/json", b"{}"
        parts = path.removeprefix("/v2/charts/").split("/")
        if len(parts) != 3:
            return None
        name, what, reference = parts
        return self._registry(name, what, reference)

    def _index(self) -> bytes:
        entries: dict[str, list[dict[str, object]]] = {}
        for (name, version), packed in self.charts.items():
            entries.setdefault(name, []).append(
                {
                    "apiVersion": "v2",
                    "name": name,
                    "version": version,
                    "digest": hashlib.sha256(packed).hexdigest(),
                    "urls": [f"{self.http}/{name}-{version}.tgz"],
                }
            )
        return json.dumps({"apiVersion": "v1", "entries": entries}).encode()

    def _registry(self, name: str, what: str, reference: str) -> tuple[str, bytes] | None:
        versions = {
            version: packed for (each, version), packed in self.charts.items() if each == name
        }
        if what == "tags":
            return "application/json", json.dumps({"name": name, "tags": list(versions)}).encode()
        manifests = {version: self._manifest(name, version) for version in versions}
        kind = "application/vnd.oci.image.manifest.v1+json"
        if what == "manifests":
            for version, manifest in manifests.items():
                if reference in (version.replace("+", "_"), _digest(manifest)):
                    return kind, manifest
        if what == "blobs":
            blobs = [*versions.values(), *(_config(name, version) for version in versions)]
            for blob in blobs:
                if reference == _digest(blob):
                    return "application/octet-stream", blob
        return None

    def _manifest(self, name: str, version: str) -> bytes:
        config, layer = _config(name, version), self.charts[name, version]
        return json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": _described("application/vnd.cncf.helm.config.v1+json", config),
                "layers": [
                    _described("application/vnd.cncf.helm.chart.content.v1.tar+gzip", layer)
                ],
            }
        ).encode()


def _config(name: str, version: str) -> bytes:
    return json.dumps({"apiVersion": "v2", "name": name, "version": version}).encode()


def _described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextlib.contextmanager
def chart_servers(
    charts: Mapping[tuple[str, str], bytes], *, private: bool = False
) -> Iterator[Charts]:
    """Serve both on one port until the end of the block."""
    served = Charts(dict(charts), private)
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            if served.private and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="charts"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            found = served.answer(self.path.partition("?")[0])
            kind, body = found or ("application/json", b'{"errors": []}')
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 (the base class's name)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Argo CD on the host: its four processes, the objects that it needs, and its login."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from k8s_ucp.components.argocd_page import page
from k8s_ucp.components.component import Health, combine, get_page, probe
from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.components.host.guarded_programs import ADDRESSES, write_helm, write_kustomize
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.kustomize import git_protocols
from k8s_ucp.kube import FIELD_MANAGER, SECRET, Kube
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.workspace import write_private_file

NAME = "argocd"
NAMESPACE = ARGOCD_NAMESPACE
SERVER = "argocd-server"
REPO_SERVER = "argocd-repo-server"
CONTROLLER = "argocd-application-controller"
APPLICATION_SETS = "argocd-applicationset-controller"
PROGRAMS = (REPO_SERVER, CONTROLLER, APPLICATION_SETS, SERVER)

PORTS = (
    *(SERVER, f"{SERVER}-metrics", REPO_SERVER, f"{REPO_SERVER}-metrics"),
    f"{CONTROLLER}-metrics",
    *(f"{APPLICATION_SETS}-metrics", f"{APPLICATION_SETS}-probe", f"{APPLICATION_SETS}-webhook"),
)

_IGNORED_TEMPLATE = """\
properties:
  metadata:
    type: object
  spec:
    properties:
      destination:
        type: object
      project:
        type: string
      source:
        properties:
          repoURL:
            type: string
        type: object
    type: object
type: object
"""
"""Schema of an empty Application, which Argo CD's clients write for a template that is not set."""

REVISION_CACHE = "10s"
"""Age of a branch tip that generators may use; polling a local repository costs nothing."""

CRDS = "crds.yaml"
_CONFIG = "config.yaml"
_TEMPORARY = "tmp"
_CLONES = "_argocd-repo"
FSCK_SECONDS = 10.0
"""Time to check one of its clones."""
_COLLECTING: Mapping[str, str] = {"GOGC": "75"}
"""They read everything at start and then mostly wait, so a lower GOGC saves memory."""
WEBHOOK_REFRESHES_ONLY = ("ARGOCD_WEBHOOK_MANIFEST_CACHE_WARM_DISABLED", "true")
"""Variable of the server. Without it, a webhook that says that a commit changes no files of an app
makes Argo CD deploy what an earlier commit contains; and anyone can send one, unsigned."""
_NO_SSH: Mapping[str, str] = {
    "GIT_SSH_COMMAND": "echo 'refused: git over ssh, which ucp.yaml names for no repository' >&2;"
    " exit 1;",
    "GIT_SSH_VARIANT": "ssh",
}
"""Argo CD's git fetches submodules and remote bases of any host that a repository names. On this
machine, ssh would have the keys of the user."""
_RENDERED_BY_US = ("argocd-cm", "argocd-cmd-params-cm", "argocd-rbac-cm")


@dataclass(frozen=True)
class AdminCredentials:
    """The initial login; password: None if a user changed it and deleted the initial Secret.

    Both are unknown for an Argo CD that others run.
    """

    user: str | None
    password: str | None


@dataclass(frozen=True)
class ArgoCD:
    """resync: seconds between refreshes of an Application without an event.

    transports: of git, which remote bases may use besides https and ssh. ssh: whether git may
    connect over ssh; a repository's Secret with a key of its own can in any case.
    """

    host: Host
    resync: int = 120
    transports: frozenset[str] = frozenset()
    ssh: bool = True

    def early_programs(self) -> list[Program]:
        """Programs that need no cluster and can start before the core is ready."""
        self._write_known_hosts()
        flags = (
            *("--port", str(self.host.ports[REPO_SERVER]), "--address", ADDRESS),
            *("--metrics-port", str(self.host.ports[f"{REPO_SERVER}-metrics"])),
            *("--metrics-address", ADDRESS, "--parallelismlimit", "4"),
            # The repo-server renders with arbitrary tools, so clients must authenticate.
            *("--client-ca-path", str(self.certificates.authority)),
            *("--redis", str(Redis(self.host).socket), "--redis-compress", "none"),
            *("--revision-cache-expiration", REVISION_CACHE),
        )
        # It evaluates jsonnet itself, also after its caller gave up: three lines of it could take
        # all memory of the machine. It exits instead, and is restarted.
        return [replace(self._program(REPO_SERVER, flags), addresses=ADDRESSES)]

    def programs(self) -> list[Program]:
        """All programs. They need the namespace, the CRDs and the configuration in the core."""
        return [
            *self.early_programs(),
            self._controller(),
            self._application_sets(),
            self._server(),
        ]

    def prepare(self, kube: Kube) -> None:
        """Write the two Secrets that its processes need; the namespace must exist.

        Argo CD's server would create the signing key too, but processes that start before it log
        errors, and one of them continues without its webhook.
        """
        kube.apply(Redis(self.host).secret())
        ensure_signing_key(kube)

    def ready(self) -> Health:
        """Ready if all four programs report that they are healthy."""
        return combine({name: partial(self.program_ready, name) for name in PROGRAMS})

    def program_ready(self, name: str) -> Health:
        port, path = {
            SERVER: (SERVER, "/healthz"),
            REPO_SERVER: (f"{REPO_SERVER}-metrics", "/healthz"),
            CONTROLLER: (f"{CONTROLLER}-metrics", "/healthz"),
            # Its probe port serves no path, because no check is registered there.
            APPLICATION_SETS: (f"{APPLICATION_SETS}-metrics", "/metrics"),
        }[name]
        return probe(self.host.ports[port], path)

    @property
    def certificates(self) -> Certificates:
        """Certificates of the repo-server and its clients."""
        return Certificates(self.host.folder(NAME, "config"))

    def _client(self) -> tuple[str, ...]:
        """Flags with which a program authenticates to the repo-server."""
        certificate, key = self.certificates.client
        return (
            *("--repo-server-ca-cert-path", str(self.certificates.authority)),
            *("--repo-server-client-cert-path", str(certificate)),
            *("--repo-server-client-cert-key-path", str(key)),
        )

    def _controller(self) -> Program:
        return self._program(
            CONTROLLER,
            (
                *("--namespace", NAMESPACE),
                *("--metrics-port", str(self.host.ports[f"{CONTROLLER}-metrics"])),
                *("--redis", str(Redis(self.host).socket), "--redis-compress", "none"),
                *("--repo-server", self.host.address(REPO_SERVER), *self._client()),
                *("--app-resync", str(self.resync), "--app-resync-jitter", "0"),
                *("--status-processors", "8", "--operation-processors", "8"),
                *("--kubectl-parallelism-limit", "8"),
                # Makes the Application show which of its objects is unhealthy.
                "--persist-resource-health",
            ),
            _COLLECTING,
        )

    def _application_sets(self) -> Program:
        return self._program(
            APPLICATION_SETS,
            (
                *("--namespace", NAMESPACE),
                *("--metrics-addr", self.host.address(f"{APPLICATION_SETS}-metrics")),
                *("--probe-addr", self.host.address(f"{APPLICATION_SETS}-probe")),
                *("--webhook-addr", self.host.address(f"{APPLICATION_SETS}-webhook")),
                *("--argocd-repo-server", self.host.address(REPO_SERVER)),
                *self._client(),
                # Our ApplicationSets use only cluster and git generators. Disabling the others
                # keeps sets from sending Secrets to an address that they name.
                *("--enable-scm-providers=false", "--token-ref-strict-mode"),
            ),
            _COLLECTING,
        )

    def _server(self) -> Program:
        assets, digest = self._write_page()
        return self._program(
            SERVER,
            (
                *("--namespace", NAMESPACE, "--address", ADDRESS),
                # The server requires a login; on loopback, TLS without client certificates would
                # not keep anybody out.
                *("--port", str(self.host.ports[SERVER]), "--insecure"),
                *("--metrics-port", str(self.host.ports[f"{SERVER}-metrics"])),
                *("--metrics-address", ADDRESS),
                *("--redis", str(Redis(self.host).socket), "--redis-compress", "none"),
                *("--repo-server", self.host.address(REPO_SERVER), *self._client()),
                *("--staticassets", str(assets)),
            ),
            # The page is read only at start, so a change must restart the program.
            dict([("UCP_PAGE_DIGEST", digest), WEBHOOK_REFRESHES_ONLY]),
        )

    def _write_page(self) -> tuple[Path, str]:
        """(folder of the page that a build from source shows, hash of the page)

        A release has its own web UI.
        """
        folder = self.host.folder(NAME, "assets")
        text = page(
            self.host.state.root.name,
            # <workspace>/.ucp/<topology>
            self.host.state.root.parent.parent,
            self.host.toolbox.path(NAME),
            self.host.address(SERVER),
        )
        write_private_file(folder / "index.html", text)
        return folder, hashlib.sha256(text.encode()).hexdigest()[:16]

    def _program(
        self, name: str, flags: tuple[str, ...], env: Mapping[str, str] | None = None
    ) -> Program:
        """A program with the common flags and environment. The repo-server needs no cluster."""
        argv = (str(self.host.toolbox.path(NAME)), *flags, "--logformat", "text")
        env = {**self._environment(), **(env or {}), "ARGOCD_BINARY_NAME": name}
        if name != REPO_SERVER:
            env |= self.host.cluster_environment()
        return Program(name, argv, self.host.folder(NAME), env)

    def _environment(self) -> Mapping[str, str]:
        folder = self.host.folder
        toolbox = self.host.toolbox
        guarded = write_helm(folder(NAME, "guarded"), toolbox.path("helm"))
        write_kustomize(guarded, toolbox.path("kustomize"), git_protocols(self.transports))
        # git runs Argo CD's own binary, by its name, as a credential helper.
        tools = {toolbox.path(name).parent for name in (NAME, "kustomize", "helm")}
        return {
            **({} if self.ssh else _NO_SSH),
            "ARGOCD_APP_CONF_PATH": str(self.certificates.folder),
            "UCP_CERTIFICATES_DIGEST": self.certificates.ensure(),
            "REDIS_PASSWORD": Redis(self.host).password(),
            "PATH": self.host.path(guarded, toolbox.module(NAME) / "hack", *sorted(tools)),
            "HOME": str(folder(NAME)),
            "TMPDIR": str(folder(NAME, _TEMPORARY)),
            "ARGOCD_FAKE_IN_CLUSTER": "true",
            "ARGOCD_TLS_DATA_PATH": str(folder(NAME, "tls")),
            "ARGOCD_SSH_DATA_PATH": str(folder(NAME, "ssh")),
            "ARGOCD_GPG_DATA_PATH": str(folder(NAME, "gpg")),
            "ARGOCD_GNUPGHOME": str(folder(NAME, "gnupg")),
            "ARGOCD_GPG_ENABLED": "false",
            "ARGOCD_PLUGINSOCKFILEPATH": str(folder(NAME, "plugins")),
            # Two topologies on one machine would share the default socket in /tmp.
            "ARGOCD_ASK_PASS_SOCK": str(self.host.runtime / "askpass.sock"),
            "ARGOCD_SYNC_WAVE_DELAY": "0",
            # How soon an app cluster that was unreachable is tried again.
            "ARGOCD_CLUSTER_SYNC_RETRY_TIMEOUT_DURATION": "2s",
            "ARGOCD_K8S_CLIENT_QPS": "300",
            "ARGOCD_K8S_CLIENT_BURST": "600",
        }

    def _write_known_hosts(self) -> None:
        """Pods get this file from a ConfigMap."""
        source = self.host.toolbox.module(NAME) / "manifests/base/config"
        text = (source / "argocd-ssh-known-hosts-cm.yaml").read_text("utf-8")
        lines = text.partition("ssh_known_hosts: |\n")[2].splitlines()
        hosts = "".join(f"{line.strip()}\n" for line in lines)
        write_private_file(self.host.folder(NAME, "ssh") / "ssh_known_hosts", hosts)


def engine_manifests(module: Path) -> dict[str, bytes]:
    """Argo CD's objects from its sources: file name in the core repository -> content.

    crds.yaml: the CRDs, without schemas of what Argo CD ignores. config.yaml: the ConfigMaps, and
    the Secret that Argo CD fills itself, without those that are rendered from our templates. Raises
    UcpError.
    """
    crds = sorted((module / "manifests/crds").glob("*-crd.yaml"))
    config = [
        path
        for path in sorted((module / "manifests/base/config").glob("argocd-*.yaml"))
        if path.stem not in _RENDERED_BY_US
    ]
    if len(crds) != 3 or not config:
        raise UcpError(f"{module} does not contain Argo CD's manifests", next="ucp tools install")
    return {
        CRDS: b"".join(
            _document(without_ignored_templates(path.read_text("utf-8"))) for path in crds
        ),
        _CONFIG: b"".join(_document(_placed(path.read_text("utf-8"))) for path in config),
    }


def without_ignored_templates(crd: str) -> str:
    """A CRD without the schemas of templates that Argo CD ignores: half of all the core's schemas.

    A generator of an ApplicationSet may change the Application, but not as a child of a matrix or
    merge generator (applicationset/generators in Argo CD: both use only the parameters).
    """
    kept: list[str] = []
    keys: list[tuple[int, str]] = []  # Those above the line, with their indentation.
    ignored = sys.maxsize
    # Not as YAML, since parsing 24,000 lines takes a second.
    for line in crd.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip(" "))
        if indent > ignored:
            continue
        ignored = sys.maxsize
        kept.append(line)
        if not line.endswith(":\n") or line.startswith("- ", indent):
            continue
        while keys and keys[-1][0] >= indent:
            keys.pop()
        keys.append((indent, line.strip()))
        if keys[-1][1] == "template:" and [key for _, key in keys].count("generators:") == 2:
            ignored = indent
            kept.append(textwrap.indent(_IGNORED_TEMPLATE, " " * (indent + 2)))
    return "".join(kept)


def ensure_signing_key(kube: Kube) -> None:
    """Create the signing key. Argo CD's server would too, but the others log errors until then."""
    found = kube.find(SECRET, "argocd-secret", NAMESPACE) or {}
    if "server.secretkey" not in (found.get("data") or {}):
        # A separate field manager, so that applying the engine's empty Secret doesn't remove the
        # key.
        kube.apply(signing_key(), manager=f"{FIELD_MANAGER}-signing-key")


def signing_key() -> dict[str, Any]:
    """Argo CD's Secret with a new key that signs its tokens."""
    key = base64.b64encode(secrets.token_urlsafe(32).encode()).decode()
    part_of = {"app.kubernetes.io/name": "argocd-secret", "app.kubernetes.io/part-of": "argocd"}
    return SECRET.object(
        "argocd-secret", NAMESPACE, labels=part_of, type="Opaque", data={"server.secretkey": key}
    )


def remove_leftovers(components: Path) -> None:
    """Delete temporary folders of its programs, which have ended; every start would add more.

    Its clones are kept, unless a full disk has left them damaged: Argo CD would use them forever.
    The repo-server makes them inaccessible, even for their owner: without this, people without root
    could neither delete nor copy the workspace.
    """
    folder = components / NAME / _TEMPORARY
    for each in folder.glob("argocd-*-wrapper-*"):
        shutil.rmtree(each, ignore_errors=True)
    clones = folder / _CLONES
    if clones.is_dir():
        clones.chmod(0o700)
        for each in clones.iterdir():
            each.chmod(0o700)
            if _is_damaged(each):
                shutil.rmtree(each, ignore_errors=True)


def _is_damaged(clone: Path) -> bool:
    """Whether git misses an object in a clone, or can't write it; False if that takes too long.

    The contents of files aren't verified: that is what takes time in a large clone.
    """
    if not (clone / ".git").exists():
        return False
    if (clone / ".git" / "index.lock").exists():
        return True
    words = ("fsck", "--connectivity-only", "--no-dangling", "--no-reflogs")
    try:
        Repository(clone).git(*words, timeout=FSCK_SECONDS)
    except GitFailed:
        return True
    except UcpError:
        return False
    return False


def ui_available(port: int) -> bool:
    """Whether Argo CD on that port has the web UI; builds from source have only the API."""
    page = get_page(port, "/", headers={"Accept": "text/html"}, most=5000)
    if isinstance(page, str):
        return False
    return page.status == 200 and b"<title>argo cd" in page.body.lower()


def initial_credentials(kube: Kube) -> AdminCredentials:
    """Login for `ucp get secrets`. Raises NotFound if Argo CD has not created the Secret yet."""
    found = kube.find(SECRET, "argocd-initial-admin-secret", NAMESPACE)
    if found is None:
        # Argo CD creates both at once; users delete the first after changing the password.
        kube.get(SECRET, "argocd-secret", NAMESPACE)
        return AdminCredentials("admin", None)
    return AdminCredentials("admin", base64.b64decode(found["data"]["password"]).decode())


def _document(text: str) -> bytes:
    return ("---\n" + text.removeprefix("---\n").rstrip("\n") + "\n").encode()


def _placed(text: str) -> str:
    """Set the namespace, which the sources leave to kustomize."""
    return re.sub(
        r"^metadata:\n", f"metadata:\n  namespace: {NAMESPACE}\n", text, count=1, flags=re.M
    )

"""A foreign repository that is checked can't run programs or see secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import indent

import pytest

from k8s_ucp.git.failures import GitFailed
from k8s_ucp.gitops.check.repositories import Checkout, check
from k8s_ucp.gitops.check_hook import FINDINGS, ensure_check_hook
from k8s_ucp.gitops.check_hook import main as check_of_a_push
from k8s_ucp.gitops.manifests import kustomize as door
from k8s_ucp.gitops.manifests.kustomize import BuildFailed, build
from k8s_ucp.gitops.manifests.sources import FIELDS
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from tests.conftest import CACHE
from tests.integration.gitops.conftest import Repositories
from tests.integration.gitops.promotion.git_servers import http_git
from tests.person import commit_all, git

LOCAL = ("file",)
SECRET = "canary-of-the-caller"


@pytest.fixture(scope="module")
def kustomize() -> Path:
    from k8s_ucp.tools.installer import Installer

    return Installer(CACHE, lambda event: None).install(("kustomize",)).path("kustomize")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A repository with a kustomization, tagged v1."""
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [map.yaml]\n")
    (folder / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far}\n")
    tag(folder)
    return folder


def tag(base: Path) -> None:
    """Commit everything in the repository, and tag it as v1."""
    commit_all(base)
    git(base, "tag", "--force", "v1")


def overlay(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "apps" / "apps" / "web" / "overlays" / "stage"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(text)
    return folder


def program(tmp_path: Path) -> tuple[Path, Path]:
    """Return a program and the file that it writes its environment to."""
    proof = tmp_path / "proof"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\nenv > {proof}\nexit 1\n")
    script.chmod(0o755)
    return script, proof


@pytest.mark.parametrize("field", FIELDS)
def test_pull_request_runs_no_program(
    field: str, kustomize: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UCP_GIT_TOKEN", SECRET)
    script, proof = program(tmp_path)
    overlay(tmp_path, f'{field}: ["file:///x?ref=--upload-pack={script}"]\n')
    found = check(kustomize, Checkout(apps=tmp_path / "apps"), also=LOCAL).errors
    assert not proof.exists()
    assert any("begins with '-'" in each.message for each in found)


@pytest.mark.parametrize(
    "entry",
    [
        "file:///x?ref=--upload-pack={script}",
        "file:///x?version=%2D%2Dupload-pack={script}",
        "ssh://-oProxyCommand={script}/a/b?ref=v1",
        "git::file://-x/y?ref=--upload-pack={script}",
        "git@-oProxyCommand={script}:a/b?ref=v1",
    ],
)
def test_options_in_urls_of_a_remote_base_run_nothing(
    entry: str, kustomize: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base on another host can be inspected only after kustomize has fetched it."""
    script, proof = program(tmp_path)
    text = f'resources: ["{entry.format(script=script)}"]\n'
    (base / "kustomization.yaml").write_text(text)
    tag(base)
    with pytest.raises(BuildFailed):
        build(kustomize, overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v1']\n"), also=LOCAL)
    assert not proof.exists()


def answers(tmp_path: Path) -> Path:
    """An askpass program that answers every question with the secret."""
    script = tmp_path / "askpass"
    script.write_text(f"#!/bin/sh\necho {SECRET}\n")
    script.chmod(0o755)
    return script


class Attacker(BaseHTTPRequestHandler):
    """A git host that asks for a password and records the requests."""

    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(f"{self.path} {self.headers}")
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def attacker() -> Iterator[tuple[str, list[str]]]:
    Attacker.heard = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/a/b", Attacker.heard
    server.shutdown()
    server.server_close()


def test_hostile_git_host_gets_no_secret(
    kustomize: Path,
    attacker: tuple[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, heard = attacker
    # As in a pipeline, git is configured with a credential for every host.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "http.extraHeader")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"Authorization: Bearer {SECRET}")
    monkeypatch.setenv("GIT_ASKPASS", str(answers(tmp_path)))
    folder = overlay(tmp_path, f"resources: ['{url}?ref=v1']\n")
    with pytest.raises(BuildFailed, match="plain http"):
        build(kustomize, folder, also=LOCAL)
    assert heard == []
    # An address that ucp.yaml names is requested, but without a credential.
    with pytest.raises(BuildFailed, match=r"401|could not read Username|Authentication failed"):
        build(kustomize, folder, also=(url,))
    assert all("info/refs" in each for each in heard)
    assert heard
    assert "Authorization" not in "".join(heard)


BY_HTTP = [
    *(f"{each}: [URL]" for each in FIELDS),
    "resources: ['git::URL?ref=v1']",
    "resources: ['HTTP:URL']",
    "openapi: {path: URL}",
    "patches: [{path: URL, target: {kind: ConfigMap}}]",
    "patchesStrategicMerge: [URL]",
    "patchesJson6902: [{path: URL, target: {version: v1, kind: ConfigMap, name: a}}]",
    "replacements: [{path: URL}]",
    "configMapGenerator: [{name: a, files: [URL]}]",
    "configMapGenerator: [{name: a, envs: [URL]}]",
    "configMapGenerator: [{name: a, env: URL}]",
    "secretGenerator: [{name: a, files: [key=URL]}]",
]


def loading(text: str, url: str) -> str:
    return f"{text.replace('HTTP:URL', url.replace('http:', 'HTTP:')).replace('URL', url)}\n"


@pytest.mark.parametrize("text", BY_HTTP)
def test_nothing_is_loaded_over_plain_http(
    text: str, attacker: tuple[str, list[str]], tmp_path: Path
) -> None:
    """Files on this machine are checked before kustomize is started."""
    url, _ = attacker
    base = overlay(tmp_path, "resources: [../../base]\n").parents[1] / "base"
    base.mkdir()
    (base / "kustomization.yaml").write_text(loading(text, url))
    with pytest.raises(BuildFailed, match=r"base/kustomization\.yaml: .* is fetched by plain http"):
        build(tmp_path / "no-program", base.parent / "overlays/stage", also=("file", f"{url}c"))


def in_a_base(base: Path, text: str) -> str:
    """An overlay on a base with this kustomization in a repository."""
    (base / "kustomization.yaml").write_text(text)
    tag(base)
    return f"resources: ['{base.as_uri()}?ref=v1']\n"


def test_nothing_is_loaded_over_plain_http_for_a_remote_base(
    attacker: tuple[str, list[str]], kustomize: Path, base: Path, tmp_path: Path
) -> None:
    """Its files can't be checked before; kustomize and its git must not load anything."""
    url, heard = attacker
    folder = overlay(tmp_path, "")
    (base / "patch.yaml").write_text(
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\n"
        f"path: {url}\ntarget: {{kind: ConfigMap}}\n"
    )
    for text in (
        "resources: [map.yaml]\ntransformers: [patch.yaml]",
        "configMapGenerator: [{name: a, files: [URL]}]",
        "openapi: {path: URL}",
        "resources: ['git::URL?ref=v1']",
        "resources: [URL]",
    ):
        overlaid = in_a_base(base, loading(text, url))
        (folder / "kustomization.yaml").write_text(overlaid)
        with pytest.raises(BuildFailed, match="plain http"):
            build(kustomize, folder, also=("file", f"{url}c"))
        assert heard == [], text


def test_repository_over_plain_http_is_read_if_the_topology_names_it(
    kustomize: Path, base: Path, tmp_path: Path
) -> None:
    words = ["git", "clone", "-q", "--bare", str(base), str(tmp_path / "git/team/far.git")]
    subprocess.run(words, check=True)
    folder = overlay(tmp_path, "")
    with http_git(tmp_path / "git", {"PATH": os.environ["PATH"]}, auth=False) as git:
        url = git.url(tmp_path / "git/team/far.git")
        (folder / "kustomization.yaml").write_text(f"resources: ['{url}?ref=v1']\n")
        for named in (url, url.removesuffix(".git")):
            assert "name: far" in build(kustomize, folder, also=(named,))
        assert all("/far.git/" in each for each in git.server.seen), "no file, by kustomize itself"
        count = len(git.server.seen)
        for named in ("http", url.replace("far", "other"), url.replace("far", "fa")):
            with pytest.raises(BuildFailed, match="is fetched by plain http"):
                build(kustomize, folder, also=(named,))
            # A remote base that refers to it can't be checked in advance.
            (folder / "kustomization.yaml").write_text(
                in_a_base(base, f"resources: ['{url}?ref=v1']\n")
            )
            with pytest.raises(BuildFailed, match="is plain http"):
                build(kustomize, folder, also=("file", named))
            (folder / "kustomization.yaml").write_text(f"resources: ['{url}?ref=v1']\n")
        assert len(git.server.seen) == count


def test_no_variable_of_the_caller_reaches_git(
    kustomize: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrapper of git records its environment, which git's helpers and filters inherit."""
    seen = tmp_path / "seen"
    mine = tmp_path / "bin" / "git"
    mine.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    mine.write_text(f'#!/bin/sh\nenv >> {seen}\nexec {real.strip()} "$@"\n')
    mine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mine.parent}:{os.environ['PATH']}")
    for name in ("AWS_SECRET_ACCESS_KEY", "UCP_GIT_TOKEN", "GIT_DIR", "GIT_ASKPASS", "KUBECONFIG"):
        monkeypatch.setenv(name, SECRET)
    made = build(
        kustomize, overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v1']\n"), also=LOCAL
    )
    assert "name: far" in made
    assert "GIT_ALLOW_PROTOCOL=file:https:ssh" in seen.read_text()
    assert SECRET not in seen.read_text()


def test_error_contains_the_message_of_git(kustomize: Path, base: Path, tmp_path: Path) -> None:
    folder = overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v9']\n")
    with pytest.raises(BuildFailed, match="couldn't find remote ref v9"):
        build(kustomize, folder, also=LOCAL)
    with pytest.raises(BuildFailed, match="transport 'file' not allowed"):
        build(kustomize, folder)


def test_nothing_is_left_in_the_temporary_folder(
    kustomize: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(door.tempfile, "tempdir", str(place))
    build(kustomize, overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v1']\n"), also=LOCAL)
    assert list(place.iterdir()) == []


BOMB = "apiVersion: v1\nkind: Bomb\nmetadata: {name: a}\na0: &a0 [x, x, x]\n" + "".join(
    f"a{each}: &a{each} [{', '.join(9 * [f'*a{each - 1}'])}]\n" for each in range(1, 9)
)
"""kustomize writes each value that the aliases stand for: gigabytes."""


@pytest.mark.parametrize(
    "text",
    [
        "resources: [bomb.yaml]\n",
        "patches: [{path: bomb.yaml, target: {kind: Bomb}}]\n",
        f"patches:\n- target: {{kind: Bomb}}\n  patch: |\n{indent(BOMB, '    ')}",
        f"resources: []\n{BOMB}",
    ],
    ids=["resource", "patch", "inline", "kustomization"],
)
def test_aliases_that_stand_for_millions_of_values_are_not_built(
    text: str, kustomize: Path, tmp_path: Path
) -> None:
    folder = overlay(tmp_path, text)
    (folder / "bomb.yaml").write_text(BOMB)
    with pytest.raises(BuildFailed, match="its aliases repeat more than 100000 values"):
        build(kustomize, folder)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts all memory")
def test_such_aliases_of_a_remote_base_take_limited_memory(
    kustomize: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "map.yaml").write_text(BOMB)
    tag(base)
    monkeypatch.setattr(door, "MEMORY", 500_000_000)
    with pytest.raises(BuildFailed, match="it needs more than 500 MB of memory"):
        build(kustomize, overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v1']\n"), also=LOCAL)


@pytest.mark.parametrize("name", ["kustomization.yaml", "map.yaml"])
def test_links_to_devices_are_not_read(name: str, kustomize: Path, tmp_path: Path) -> None:
    folder = overlay(tmp_path, "resources: [../../base]\n")
    base = folder.parents[1] / "base"
    base.mkdir()
    (base / "kustomization.yaml").write_text("resources: [map.yaml]\n")
    (base / name).unlink(missing_ok=True)
    (base / name).symlink_to("/dev/zero")
    found = check(kustomize, Checkout(apps=tmp_path / "apps")).errors
    assert {each.rule for each in found} == {"build-failed", "symlink-out-of-bounds"}


def test_an_app_in_a_submodule_is_listed_as_unchecked(kustomize: Path, tmp_path: Path) -> None:
    overlay(tmp_path, "resources: []\n")
    text = '[submodule "a"]\n\tpath = apps/far\n\turl = https://git.example.org/far\n'
    (tmp_path / "apps" / ".gitmodules").write_text(text)
    notes = check(kustomize, Checkout(apps=tmp_path / "apps")).notes
    assert notes == ["apps: apps/far: not checked: only Argo CD fetches this submodule"]


@pytest.fixture
def checked(world: Repositories, kustomize: Path) -> Repositories:
    world.start()
    for name, bare in (("core", world.folder.core_remote), ("apps", world.folder.apps_remote)):
        ensure_check_hook(bare, name, python=Path(sys.executable), kustomize=kustomize)
    return world


def test_push_of_an_app_by_repository_is_accepted(checked: Repositories, base: Path) -> None:
    """In a hook, git's variables refer to the repository that receives the push."""
    text = f"resources:\n  - {base.as_uri()}?ref=v1\n"
    checked.push(
        "apps",
        {
            "apps/far/base/kustomization.yaml": text.encode(),
            "apps/far/overlays/stage/kustomization.yaml": b"resources: [../../base]\n",
        },
    )
    assert "apps/far/base/kustomization.yaml" in checked.files("apps")


NAMING = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  environments: [{{name: stage}}, {{name: prod, promotesFrom: stage}}]
  apps:
    - {{name: echo, image: ealen/echo-server, tag: 0.9.2, hosts: [echo]}}
    - {{name: far, repo: "{url}", revision: v1}}
"""


def test_push_that_loads_over_plain_http_is_refused_unless_the_topology_names_the_repository(
    checked: Repositories, base: Path, tmp_path: Path
) -> None:
    words = ["git", "clone", "-q", "--bare", str(base), str(tmp_path / "git/team/far.git")]
    subprocess.run(words, check=True)
    with http_git(tmp_path / "git", {"PATH": os.environ["PATH"]}, auth=False) as git:
        url = git.url(tmp_path / "git/team/far.git")
        path = "apps/far/overlays/stage/kustomization.yaml"
        overlaid = f"resources: ['{url}?ref=v1']\n".encode()
        with pytest.raises(GitFailed, match="is fetched by plain http"):
            checked.push("apps", {path: overlaid})
        assert git.server.seen == []
        checked.push("core", {"ucp.yaml": NAMING.format(url=url).encode()})
        checked.push("apps", {path: overlaid})
        assert git.server.seen


ODD = (
    ("odd.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"),
    ("odd.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [a]\n"),
    ("odd.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: [a]}\n"),
    ("odd.yaml", "apiVersion: v1\nkind: [a]\nmetadata: {name: a}\n"),
    ("odd.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 5}\n"),
    ("odd.yaml", "kind: Ingress\nmetadata: {name: a}\nspec: [1]\n"),
    ("odd.yaml", 'kind: A\nx: "\\U7fffffff"\n'),
    ("odd.yaml", "kind: A\nx: !!bool maybe\n"),
    ("odd.yaml", "kind: A\nx: " + "[" * 200_000 + "]" * 200_000 + "\n"),
    ("apps/odd/overlays/stage/kustomization.yaml", "resources: 5\n"),
    ("apps/odd/overlays/stage/kustomization.yaml", "helmCharts: 5\n"),
)
"""Paths and contents of files."""
BROKEN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken, namespace: web}
spec:
  selectr: {matchLabels: {app: broken}}
  template:
    metadata: {labels: {app: broken}}
    spec: {containers: [{name: broken, image: "example.org/broken:1.0"}]}
"""


@pytest.mark.parametrize(("path", "text"), ODD)
def test_malformed_file_does_not_disable_the_check(
    path: str, text: str, kustomize: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = overlay(tmp_path, "resources: [deployment.yaml]\n")
    (stage / "deployment.yaml").write_text(BROKEN)
    odd = tmp_path / "apps" / path
    odd.parent.mkdir(parents=True, exist_ok=True)
    odd.write_text(text)
    assert check_of_a_push(words_of_the_hook(kustomize, tmp_path)) == FINDINGS
    assert "unknown field spec.selectr" in capsys.readouterr().out


def test_push_of_malformed_files_is_refused(checked: Repositories) -> None:
    before = checked.refs()
    with pytest.raises(GitFailed) as caught:
        checked.push("apps", {path: text.encode() for path, text in ODD})
    assert "this push is rejected" in caught.value.message
    assert checked.refs() == before


@pytest.mark.parametrize(
    "folder",
    [
        "shared",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("backup", "apps/echo/base/shared")
        ),
    ],
)
def test_push_of_a_shared_base_is_checked_for_the_apps_that_use_it(
    folder: str, checked: Repositories
) -> None:
    text = b"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
    up = "../../../.."
    checked.push(
        "apps",
        {
            f"{folder}/kustomization.yaml": b"resources: [service.yaml]\n",
            f"{folder}/service.yaml": text,
            "apps/mine/overlays/stage/kustomization.yaml": f"resources: [{up}/{folder}]\n".encode(),
        },
    )
    with pytest.raises(GitFailed, match="this push is rejected because it adds errors"):
        checked.push("apps", {f"{folder}/service.yaml": text.replace(b"port: 80", b"port: x")})


def words_of_the_hook(kustomize: Path, tmp_path: Path) -> list[str]:
    """Arguments of a check after a push that changed odd.yaml and the app web."""
    (tmp_path / "changed").write_text("odd.yaml\napps/web/overlays/stage/deployment.yaml\n")
    return [
        *("--kustomize", str(kustomize), "--repository", "apps", "--code", str(FINDINGS)),
        *("--folder", str(tmp_path / "apps"), "--changed", str(tmp_path / "changed")),
    ]


def test_push_hook_refuses_file_urls_as_bases_if_there_are_teams(
    base: Path, kustomize: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a repository could be another team's, whoever may read it."""
    overlay(tmp_path, f"resources: ['{base.as_uri()}?ref=v1']\n")
    (tmp_path / "core").mkdir()
    words = [*words_of_the_hook(kustomize, tmp_path), "--core", str(tmp_path / "core")]
    topology = topology_text(default())
    (tmp_path / "core" / "ucp.yaml").write_text(topology)
    assert check_of_a_push(words) == 0
    (tmp_path / "core" / "ucp.yaml").write_text(f"{topology}  teams:\n    - name: shop\n")
    assert check_of_a_push(words) == FINDINGS
    assert "transport 'file' not allowed" in capsys.readouterr().out


def test_hook_of_an_earlier_version_still_refuses(
    checked: Repositories, kustomize: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It passes no exit code for findings and expects 1; it accepted every other code."""
    overlay(tmp_path, "resources: [../../base]\n")
    (tmp_path / "apps" / "odd.yaml").write_text("kind: A\nmetadata:\n")
    words = words_of_the_hook(kustomize, tmp_path)
    place = words.index("--code")
    assert check_of_a_push([*words[:place], *words[place + 2 :]]) == 1
    assert check_of_a_push(words) == FINDINGS
    assert "metadata must be a mapping" in capsys.readouterr().out


def test_push_that_was_not_checked_says_so(
    world: Repositories, kustomize: Path, tmp_path: Path
) -> None:
    world.start()
    ensure_check_hook(
        world.folder.apps_remote, "apps", python=tmp_path / "gone", kustomize=kustomize
    )
    clone = world.person / "mine"
    words = ["git", "clone", "-q", world.folder.apps_remote.as_uri(), str(clone)]
    subprocess.run(words, check=True)
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "Mine")
    pushed = subprocess.run(
        ["git", "push", "origin", "main"], cwd=clone, check=True, capture_output=True, text=True
    )
    assert "this push was not checked" in pushed.stderr


@pytest.mark.parametrize("name", ["..", ".git"])
def test_push_of_files_that_can_not_be_written_is_refused(
    name: str, checked: Repositories, tmp_path: Path
) -> None:
    """Argo CD can't check out such a commit, so no app would be deployed any more."""
    bare = checked.folder.apps_remote
    clone = tmp_path / "mine"
    subprocess.run(["git", "clone", "-q", bare.as_uri(), str(clone)], check=True)

    def git(*words: str, stdin: bytes = b"") -> str:
        me = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
        done = subprocess.run(
            ["git", *me, *words], cwd=clone, check=True, input=stdin, stdout=subprocess.PIPE
        )
        return done.stdout.decode().strip()

    blob = git("hash-object", "-w", "--stdin", stdin=b"a: 1\n")
    below = git("mktree", stdin=f"100644 blob {blob}\tconfig\n".encode())
    entry = f"40000 {name}\0".encode() + bytes.fromhex(below)
    words = ("hash-object", "-w", "--stdin", "-t", "tree", "--literally")
    commit = git("commit-tree", git(*words, stdin=entry), "-p", "HEAD", "-m", "Mine")
    pushed = subprocess.run(
        ["git", "push", "origin", f"{commit}:refs/heads/main"],
        cwd=clone,
        capture_output=True,
        text=True,
    )
    assert pushed.returncode == 1, pushed.stderr
    assert f"invalid path '{name}/config'" in pushed.stderr


def test_push_removes_files_of_killed_checks(
    checked: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shared"
    old, new = place / "ucp-check.aB3dE6", place / "ucp-check.fG4hI7"
    for each in (old, new):
        (each / "new").mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setenv("TMPDIR", str(place))
    checked.push("apps", {"notes.md": b"mine\n"})
    assert list(place.iterdir()) == [new]

"""Preflight checks, which run before anything is changed."""

from __future__ import annotations

import errno
import os
import resource
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cli.git_credentials import credential_of, read_credential_of
from k8s_ucp.context import StartContext
from k8s_ucp.errors import ProgramMissing, UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.preflight import machine as check_machine
from k8s_ucp.preflight.core import check_git_reach, check_git_rights
from k8s_ucp.preflight.machine import check_versions
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import Topology, default, parse
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.workspace import Workspace


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartContext:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return StartContext(workspace=Workspace.at(tmp_path / "new" / "work space"), topology=default())


def refused(check: Callable[[StartContext], None], context: StartContext) -> UcpError:
    with pytest.raises(UcpError) as caught:
        check(context)
    assert caught.value.next
    return caught.value


def test_a_missing_cloud_simulator_is_reported(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_machine, "missing_packages", lambda: ["boto3", "moto"])
    check_machine.check_simulator(context)
    context.topology = default(clouds=Clouds.model_validate({"aws": {"simulated": True}}))
    error = refused(check_machine.check_simulator, context)
    assert error.message.endswith("packages that are not installed: boto3, moto")
    assert "k8s-ucp[cloud]" in str(error.next) and "make install-cloud" in str(error.next)


@pytest.mark.parametrize("name", ["argocd", "crossplane"])
def test_a_component_version_that_ucp_does_not_install_is_refused(
    name: str, context: StartContext
) -> None:
    """A pinned version is never replaced by an older or a newer one."""
    brought = CATALOGUE[name].version
    for version in (brought, f"v{brought}"):
        context.topology = with_version(name, version)
        check_versions(context)
    context.topology = with_version(name, "1.0.0")
    error = refused(check_versions, context)
    assert (
        error.message == f"spec.{name}.version is 1.0.0, but this version of ucp installs {brought}"
    )


def test_a_kubernetes_version_that_ucp_does_not_install_is_refused(
    context: StartContext,
) -> None:
    brought = CATALOGUE["kubernetes"].version
    for version in (brought, f"v{brought}", brought.rpartition(".")[0]):
        context.topology = topology(f"{{core: {{version: '{version}'}}}}")
        check_versions(context)
    for spec, where in (
        ("{core: {version: '1.3'}}", "spec.core"),
        ("{environments: [{name: a, cluster: {version: 1.2.3}}]}", "the environment a"),
    ):
        context.topology = topology(spec)
        error = refused(check_versions, context)
        assert error.message.startswith(f"{where}: Kubernetes 1.")
        assert error.next == f"set version: {brought}, or remove the key"
    context.topology = topology(
        "{environments: [{name: a, cluster: {provider: kind, version: 1.2.3}}]}"
    )
    check_versions(context)


def with_version(name: str, version: str) -> Topology:
    return topology(f"{{{name}: {{version: {version}}}}}")


def topology(spec: str) -> Topology:
    head = "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"
    return parse(f"{head}spec: {spec}\n", Path("ucp.yaml"))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("git@g.example.org:a/core.git", "has no SSH key"),
        ("ssh://git@g.example.org/core.git", "has no SSH key"),
        ("file:///srv/core.git", "can't reach"),
        ("http://127.0.0.1:3000/core.git", "can't reach"),
        ("https://g.example.org/core.git", ""),
    ],
)
def test_repositories_that_pods_cannot_reach_are_refused(
    url: str, why: str, context: StartContext
) -> None:
    git = f"git: {{provider: url, core: '{url}', apps: 'https://g.example.org/apps.git'}}"
    context.topology = topology(f"{{core: {{provider: embedded}}, {git}}}")
    check_git_reach(context)
    context.topology = topology(f"{{core: {{provider: kind}}, {git}}}")
    if not why:
        check_git_reach(context)
        return
    message = refused(check_git_reach, context).message
    assert message.startswith(f"spec.git.core is {url}, ")
    assert why in message


def test_missing_git_is_reported(context: StartContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_machine, "find_program", lambda _: None)
    error = refused(check_machine.check_system, context)
    assert isinstance(error, ProgramMissing)
    assert "install git" in str(error)


def test_unsupported_operating_systems_are_refused(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_machine.sys, "platform", "darwin")
    assert "Linux only, not on darwin" in refused(check_machine.check_system, context).message
    kind = "{provider: kind}"
    context.topology = topology(f"{{core: {kind}, environments: [{{name: a, cluster: {kind}}}]}}")
    monkeypatch.setattr(check_machine, "find_program", lambda _: "git")
    check_machine.check_system(context)
    monkeypatch.setattr(check_machine.sys, "platform", "win32")
    assert (
        "Linux and macOS only, not on win32" in refused(check_machine.check_system, context).message
    )


def test_too_little_free_disk_space_is_refused(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_machine.check_folders(context)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=7 * 10**6))
    message = refused(check_machine.check_folders, context).message
    assert "7 MB free, 500 MB needed" in message


def test_too_few_free_inodes_are_refused(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(f_files=0, f_favail=0)  # a file system without a limit
    monkeypatch.setattr(check_machine.os, "statvfs", lambda _: found)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**12))
    check_machine.check_folders(context)
    found.f_files, found.f_favail = 96_000, 7
    error = refused(check_machine.check_folders, context)
    assert "7 free, 2000 needed" in error.message
    assert "df -i" in (error.next or "")


def test_a_file_in_place_of_a_folder_is_reported(context: StartContext, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("")
    assert f"the folder {tmp_path / 'new'} is not writable" in str(
        refused(check_machine.check_folders, context)
    )
    (tmp_path / "new").unlink()
    (tmp_path / "cache").write_text("")
    assert "set UCP_CACHE_DIR" in str(refused(check_machine.check_folders, context))


def test_a_cache_folder_without_permissions_is_reported(
    context: StartContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """HOME may be another user's: cron, su without a dash, a container's root."""
    home, look = tmp_path / "home", os.stat

    def closed(path: Any, **options: Any) -> os.stat_result:
        if home in Path(str(path)).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, **options)

    home.write_text("")  # A file, because root can write into any folder.
    monkeypatch.setenv("UCP_CACHE_DIR", str(home / "cache"))
    monkeypatch.setattr(os, "stat", closed)
    error = refused(check_machine.check_folders, context)
    assert (
        error.message == f"the folder {home} is not writable, so {home / 'cache'} can't be created"
    )
    assert error.next == "set UCP_CACHE_DIR to a writable folder"


def test_a_low_limit_of_open_files_is_refused(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 256))
    assert "open files is 256" in refused(check_machine.check_limits, context).message
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, resource.RLIM_INFINITY))
    check_machine.check_limits(context)


def test_a_low_limit_of_processes_is_refused_unless_root_runs_them(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start waited in vain: the components can't start their threads."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (150, 4096))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = refused(check_machine.check_limits, context)
    assert "processes and threads is 150" in error.message
    assert (error.next or "").startswith("ulimit -u 512 ")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    check_machine.check_limits(context)


def test_a_low_limit_of_inotify_watches_is_refused(
    context: StartContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    monkeypatch.setattr(check_machine, "INOTIFY", tmp_path)
    check_machine.check_limits(context)
    (tmp_path / "max_user_watches").write_text("100\n")
    error = refused(check_machine.check_limits, context)
    assert "fs.inotify.max_user_watches is 100" in error.message
    assert error.next == f"sudo sysctl fs.inotify.max_user_watches={check_machine.WATCHES}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_private_credential_files_are_accepted(context: StartContext, mode: int) -> None:
    folder = context.workspace.credentials
    folder.mkdir(parents=True)
    for name in ("README.md", "gcp.json.example"):
        (folder / name).touch(mode=0o644)
    (folder / "gcp.json").touch()
    (folder / "gcp.json").chmod(mode)
    check_machine.check_credentials(context)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_credential_files_readable_by_other_users_are_refused(
    context: StartContext, mode: int
) -> None:
    folder = context.workspace.credentials
    folder.mkdir(parents=True)
    (folder / "gcp.json").touch()
    (folder / "gcp.json").chmod(mode)
    error = refused(check_machine.check_credentials, context)
    assert "can read gcp.json" in error.message
    assert error.next == shlex.join(["chmod", "600", str(folder / "gcp.json")])


def test_argo_cd_uses_the_read_only_credential(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who can read Argo CD's Secrets could push to both repositories with the other one."""
    git = "provider: url, core: 'https://g/core.git', apps: 'https://g/apps.git', auth: forge"
    context.topology = topology(f"{{git: {{{git}, readAuth: reader}}}}")
    folder = context.workspace.credentials
    folder.mkdir(parents=True)
    for name in ("forge", "reader"):
        (folder / f"{name}.token").write_text(f"token-of-{name}\n")
        (folder / f"{name}.token").chmod(0o600)
    monkeypatch.delenv("UCP_GIT_TOKEN", raising=False)
    context.git_credential = credential_of(context.topology, context.workspace)
    context.git_read_credential = read_credential_of(context.topology, context.workspace)
    check_git_rights(context)
    assert context.notes == []
    found = [each["stringData"] for each in context.repository_secrets()]
    assert [each["url"] for each in found] == ["https://g/core.git", "https://g/apps.git"]
    assert {each["password"] for each in found} == {"token-of-reader"}
    # The variable is used for pushing, and does not replace the read credential.
    monkeypatch.setenv("UCP_GIT_TOKEN", "another")
    assert read_credential_of(context.topology, context.workspace) == context.git_read_credential


def test_an_argo_cd_with_a_push_credential_is_reported(context: StartContext) -> None:
    git = "provider: url, core: 'https://g/core.git', apps: 'https://g/apps.git'"
    context.topology = topology(f"{{git: {{{git}}}}}")
    check_git_rights(context)
    assert context.notes == []
    context.git_credential = Credential("me", "secret")
    assert read_credential_of(context.topology, context.workspace) is None
    check_git_rights(context)
    assert "spec.git.readAuth" in context.notes[0]
    assert {each["stringData"]["password"] for each in context.repository_secrets()} == {"secret"}


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a'b", "a\nb"])
def test_a_workspace_path_that_embedded_clusters_cannot_use_is_refused(
    context: StartContext, name: str
) -> None:
    """Refused before anything is created."""
    context.workspace = Workspace.at(context.workspace.root / name)
    error = refused(check_machine.check_clusters, context)
    assert "a comma, a double quote, an apostrophe or a line break" in error.message
    assert "--workspace DIR" in str(error.next)

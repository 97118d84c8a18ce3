"""Programs of the components: on loopback only, with no secret that other users can read."""

from __future__ import annotations

import html
import os
import re
import shlex
import stat
import subprocess
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.cloud.keys import settle_keys
from k8s_ucp.components import argocd
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.cloud import CloudComponent
from k8s_ucp.components.crossplane import Crossplane
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program, section
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.components.reconciler import ReconcilerComponent
from k8s_ucp.components.watcher import Watcher
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.topology import CrossplaneSettings
from tests.person import commit_all


def all_programs(host: Host) -> dict[str, Program]:
    settings = CrossplaneSettings(pollInterval="7m", syncInterval="3h", maxReconcileRate=42)
    made = [
        *Redis(host).programs(),
        *ArgoCD(host, resync=30).programs(),
        *Crossplane(host, settings).programs(),
        *ReconcilerComponent(host, host.state.root.parent.parent, "demo").programs(),
        *Watcher(HostPlacement(host.state, host.runtime)).programs(),
        *CloudComponent(host, "demo").programs(),
    ]
    return {each.name: each for each in made}


def value(program: Program, flag: str) -> str:
    return program.argv[program.argv.index(flag) + 1]


def test_every_program_has_a_valid_supervisor_section(host: Host) -> None:
    programs = all_programs(host)
    assert set(programs) == {
        *argocd.PROGRAMS,
        *("redis", "crossplane", "reconciler", "watcher", "cloud"),
    }
    assert all(section(each) for each in programs.values())


@pytest.mark.parametrize("last", ["exit 1", "exec sleep 60"])
def test_a_failed_crossplane_initialization_reports_its_last_output(host: Host, last: str) -> None:
    program = host.toolbox.path("crossplane")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho first >&2\necho second >&2\n{last}\n")
    program.chmod(0o700)
    with pytest.raises(DeadlineExceeded) as caught:
        Crossplane(host, CrossplaneSettings()).initialize(timeout=0.5)
    assert caught.value.message.startswith(
        "end of `crossplane core init`: not reached within 0.5 s"
    )
    assert caught.value.message.endswith("last state: second")
    assert caught.value.next == "ucp start"


def test_leftovers_of_argo_cd_are_deleted_and_its_clones_become_accessible(host: Host) -> None:
    temporary = Path(ArgoCD(host, resync=30).programs()[0].env["TMPDIR"])
    for name in ("argocd-git-wrapper-1", "argocd-helm-wrapper-2"):
        (temporary / name).mkdir()
        (temporary / name / "git").write_text("")
    clone = temporary / "_argocd-repo" / "e558c6a6"
    clone.mkdir(parents=True)
    clone.chmod(0)
    clone.parent.chmod(0o300)
    argocd.remove_leftovers(host.state.components)
    assert [each.name for each in temporary.iterdir()] == ["_argocd-repo"]
    assert [each.stat().st_mode & 0o777 for each in (clone.parent, clone)] == [0o700, 0o700]
    argocd.remove_leftovers(host.state.components / "none")


def test_a_clone_of_argo_cd_that_a_full_disk_has_damaged_is_deleted(host: Host) -> None:
    clones = host.folder("argocd", "tmp") / "_argocd-repo"
    for name in ("damaged", "locked", "whole"):
        folder = clones / name
        folder.mkdir(parents=True)
        (folder / "a").write_text(name)
        commit_all(folder)
    tree = subprocess.run(
        ["git", "rev-parse", "HEAD^{tree}"],
        cwd=clones / "damaged",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (clones / "damaged" / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (clones / "locked" / ".git" / "index.lock").touch()
    argocd.remove_leftovers(host.state.components)
    assert [each.name for each in clones.iterdir()] == ["whole"]


def test_keys_of_the_simulated_cloud_stay_in_its_private_folder(host: Host) -> None:
    first, account = all_programs(host)["cloud"], CloudComponent(host, "demo").account()
    keys = settle_keys(host.folder("cloud"))
    assert account.access_key == keys.access_key
    assert account.endpoint == f"http://{host.address('cloud')}"
    words = " ".join([*first.argv, *first.env.values()])
    assert not any(key in words for key in (keys.access_key, keys.secret_key, keys.token))
    assert not any(key in f"{keys}" for key in (keys.secret_key, keys.token))
    assert stat.S_IMODE((host.folder("cloud") / "keys.json").stat().st_mode) == 0o600
    # Unchanged, so a second start does not restart it.
    assert all_programs(host)["cloud"] == first


def test_the_server_serves_a_help_page_if_it_has_no_web_ui(host: Host) -> None:
    server = all_programs(host)[argocd.SERVER]
    text = (Path(value(server, "--staticassets")) / "index.html").read_text()
    program = html.escape(shlex.quote(str(host.toolbox.path(argocd.NAME))))
    assert f"{program} login {host.address(argocd.SERVER)} --plaintext --username admin" in text
    for words in ("ucp board", "ucp tools install argocd --source releases", "ucp start"):
        assert f"<pre>{words}" in text or f"\n{words}</pre>" in text
    # `ucp open argocd` must not mistake it for Argo CD's web UI.
    assert "<title>argo cd" not in text.lower()


def test_the_server_is_restarted_when_its_page_changes(host: Host) -> None:
    before = all_programs(host)[argocd.SERVER]
    assert all_programs(host)[argocd.SERVER] == before
    moved = replace(host.toolbox, programs={**host.toolbox.programs, "argocd": Path("/x/argocd")})
    after = all_programs(replace(host, toolbox=moved))[argocd.SERVER]
    assert after.env["UCP_PAGE_DIGEST"] != before.env["UCP_PAGE_DIGEST"]


def test_no_password_is_in_an_argument(host: Host) -> None:
    password = Redis(host).password()
    for each in all_programs(host).values():
        assert password not in " ".join(each.argv)
        assert password not in section(each)


@pytest.mark.parametrize("content", ["", "\0" * 32])
def test_a_redis_password_that_a_power_failure_destroyed_is_replaced(
    host: Host, content: str
) -> None:
    password = Redis(host).password()
    (host.folder("redis") / "password").write_text(content)
    found = Redis(host).password()
    assert len(found) >= 20
    assert found not in (content, password)
    assert Redis(host).password() == found


def test_the_redis_password_is_reused_and_private(host: Host) -> None:
    password = Redis(host).password()
    assert len(password) >= 20
    assert Redis(host).password() == password
    Redis(host).programs()
    for name in ("password", "redis.conf"):
        path = host.folder("redis") / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_redis_persists_nothing_and_listens_on_a_private_socket_only(host: Host) -> None:
    Redis(host).programs()
    lines = (host.folder("redis") / "redis.conf").read_text().splitlines()
    assert 'save ""' in lines
    assert "appendonly no" in lines
    assert "port 0" in lines
    assert f'unixsocket "{host.runtime}/redis.sock"' in lines
    for name in (argocd.REPO_SERVER, argocd.CONTROLLER, argocd.SERVER):
        assert value(all_programs(host)[name], "--redis") == f"{host.runtime}/redis.sock"


@pytest.mark.parametrize("name", argocd.PROGRAMS)
def test_argo_cd_listens_on_loopback_only(host: Host, name: str) -> None:
    words = " ".join(all_programs(host)[name].argv)
    assert "0.0.0.0" not in words
    for address in re.findall(r"(\S*):(2\d{4})", words):
        assert address[0] == "127.0.0.1"
    flags = {
        argocd.SERVER: ("--address 127.0.0.1", "--metrics-address 127.0.0.1"),
        argocd.REPO_SERVER: ("--address 127.0.0.1", "--metrics-address 127.0.0.1"),
        argocd.CONTROLLER: ("--metrics-port",),
        argocd.APPLICATION_SETS: ("--metrics-addr 127", "--probe-addr 127", "--webhook-addr 127"),
    }
    for flag in flags[name]:
        assert flag in words


def test_a_webhook_can_not_move_manifests_of_one_commit_to_another(host: Host) -> None:
    env = all_programs(host)[argocd.SERVER].env
    assert env["ARGOCD_WEBHOOK_MANIFEST_CACHE_WARM_DISABLED"] == "true"


def test_no_two_programs_listen_on_the_same_port(host: Host) -> None:
    listening = re.compile(r"--(?:[a-z-]*port|[a-z-]+-addr) (?:127\.0\.0\.1:)?(2\d{4})")
    words = " ".join(" ".join(each.argv) for each in all_programs(host).values())
    found = listening.findall(words)
    assert len(found) == len(set(found)) == len(host.ports)


def test_argo_cd_calls_its_own_wrappers_and_our_kustomize_and_helm(host: Host) -> None:
    for name in argocd.PROGRAMS:
        env = all_programs(host)[name].env
        folders = env["PATH"].split(":")
        assert folders[:2] == [
            str(host.folder("argocd", "guarded")), str(host.toolbox.module("argocd") / "hack")
        ]  # fmt: skip
        for program in ("argocd", "kustomize", "helm"):
            assert str(host.toolbox.path(program).parent) in folders
        assert env["ARGOCD_BINARY_NAME"] == name
        assert env["ARGOCD_SYNC_WAVE_DELAY"] == "0"


def test_only_the_repo_server_evaluates_what_others_write_so_its_memory_is_limited(
    host: Host,
) -> None:
    limited = {name for name, each in all_programs(host).items() if each.addresses}
    assert limited == {argocd.REPO_SERVER}


def test_git_of_argo_cd_does_not_use_the_users_ssh_keys(host: Host) -> None:
    [server] = ArgoCD(host, ssh=False).early_programs()
    [allowed] = ArgoCD(host).early_programs()
    assert "GIT_SSH_COMMAND" not in allowed.env
    chosen = {name: word for name, word in server.env.items() if name.startswith("GIT_SSH")}
    for url in ("ssh://git@127.0.0.1:1/x.git", "git@127.0.0.1:x.git"):
        argv = ["git", "ls-remote", url]
        done = subprocess.run(
            argv, env={**os.environ, **chosen}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 128
        assert "refused: git over ssh" in done.stderr


def test_argo_cd_uses_no_folder_shared_between_topologies(host: Host) -> None:
    env = all_programs(host)[argocd.REPO_SERVER].env
    root = str(host.state.root)
    for name in ("HOME", "TMPDIR", "ARGOCD_TLS_DATA_PATH", "ARGOCD_PLUGINSOCKFILEPATH"):
        assert env[name].startswith(root)
    assert env["ARGOCD_ASK_PASS_SOCK"].startswith(str(host.runtime))


def test_ssh_known_hosts_are_those_of_argo_cd(host: Host) -> None:
    ArgoCD(host).early_programs()
    known = host.folder("argocd", "ssh") / "ssh_known_hosts"
    assert known.read_text() == "# hosts\nexample.org ssh-ed25519 AAAA\n"


def test_settings_of_the_topology_reach_the_programs(host: Host) -> None:
    programs = all_programs(host)
    assert value(programs[argocd.CONTROLLER], "--app-resync") == "30"
    crossplane = programs["crossplane"]
    assert value(crossplane, "--poll-interval") == "7m"
    assert value(crossplane, "--sync-interval") == "3h"
    assert value(crossplane, "--max-concurrent-reconciles") == "42"
    assert value(crossplane, "--package-runtime") == "External"
    assert "--enable-webhooks=false" in crossplane.argv
    assert "--enable-realtime-compositions=true" in crossplane.argv


def test_programs_that_use_the_core_are_restarted_with_a_new_kubeconfig(host: Host) -> None:
    before = all_programs(host)
    host.kubeconfig.write_text("another core")
    after = all_programs(host)
    changed = {name for name in before if section(before[name]) != section(after[name])}
    assert changed == {
        *(argocd.CONTROLLER, argocd.APPLICATION_SETS, argocd.SERVER),
        *("crossplane", "reconciler"),
    }


def test_the_arguments_list_all_controllers_so_that_a_new_one_restarts_the_reconciler(
    host: Host,
) -> None:
    named = value(all_programs(host)["reconciler"], "--controllers")
    on_machine = ["backup", "local-clusters", "managed-resources"]
    assert named.split(",") == sorted(
        ["applications", "mirrors", "passwords", "registration", *on_machine]
    )


def test_the_reconciler_uses_the_container_engine_of_the_user(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIND_EXPERIMENTAL_PROVIDER", "podman")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/user/1000/docker.sock")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    found = all_programs(host)["reconciler"].env
    assert found["KIND_EXPERIMENTAL_PROVIDER"] == "podman"
    assert found["DOCKER_HOST"] == "unix:///run/user/1000/docker.sock"
    assert "DOCKER_CONTEXT" not in found


def test_a_folder_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="does not contain"):
        argocd.engine_manifests(tmp_path)


CRD = """\
properties:
  generators:
    items:
      properties:
        list:
          properties:
            template:
              type: string
        matrix:
          properties:
            generators:
              items:
                properties:
                  list:
                    properties:
                      template:
                        properties:
                          metadata:
                            type: string
                        required:
                        - metadata
                        type: object
                      values:
                        type: object
            template:
              type: string
  template:
    type: string
"""
"""The schema of an ApplicationSet with two generators, of which one has a child."""


def test_only_the_schemas_of_templates_that_argo_cd_ignores_are_replaced() -> None:
    found, before = (yaml_io.load(each) for each in (argocd.without_ignored_templates(CRD), CRD))
    child = ("properties", "generators", "items", "properties", "list", "properties")
    nested = ("properties", "generators", "items", "properties", "matrix", *child)
    ignored = reduce(getitem, nested, found).pop("template")
    assert reduce(getitem, nested, before).pop("template") != ignored
    assert found == before
    assert ignored["properties"]["metadata"] == {"type": "object"}
    assert ignored["properties"]["spec"]["properties"].keys() == {
        "destination",
        "project",
        "source",
    }


def test_argo_cd_manifests_omit_objects_that_our_templates_define(tmp_path: Path) -> None:
    crds, config = tmp_path / "manifests/crds", tmp_path / "manifests/base/config"
    crds.mkdir(parents=True)
    config.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (crds / f"{name}-crd.yaml").write_text(f"kind: {name}\n")
    for name in ("argocd-cm", "argocd-rbac-cm", "argocd-secret", "argocd-tls-certs-cm"):
        (config / f"{name}.yaml").write_text(f"kind: X\nmetadata:\n  name: {name}\n")
    found = argocd.engine_manifests(tmp_path)
    assert found["crds.yaml"] == b"---\nkind: a\n---\nkind: b\n---\nkind: c\n"
    assert found["config.yaml"] == b"".join(
        f"---\nkind: X\nmetadata:\n  namespace: argocd\n  name: {name}\n".encode()
        for name in ("argocd-secret", "argocd-tls-certs-cm")
    )

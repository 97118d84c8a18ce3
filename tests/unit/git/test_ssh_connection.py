"""Which git calls share an SSH connection."""

from __future__ import annotations

import pytest

from k8s_ucp.git.ssh_connection import base_command, ssh_target


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("git@github.com:acme/apps.git", ("--", "git@github.com")),
        ("host:apps", ("--", "host")),
        ("[::1]:apps", ("--", "::1")),
        ("ssh://git@host/apps", ("--", "git@host")),
        ("ssh://git@host:2222/apps", ("-p", "2222", "--", "git@host")),
        ("git+ssh://host/apps", ("--", "host")),
        ("ssh://-oProxyCommand=touch/apps", ("--", "-oproxycommand=touch")),
        ("ssh://host:port/apps", ()),
        ("ssh://[host/apps", ()),
        ("https://git@host/apps", ()),
        ("file:///srv/git@host:apps", ()),
        ("/srv/git@host:apps", ()),
        ("./a:b", ()),
    ],
)
def test_host_is_read_as_git_reads_it(url: str, target: tuple[str, ...]) -> None:
    assert ssh_target(url) == target


@pytest.mark.parametrize(
    ("configured", "environment", "command"),
    [
        ("", {}, "ssh"),
        ("ssh -i ~/.ssh/ci", {}, "ssh -i ~/.ssh/ci"),
        ("ssh -4", {"GIT_SSH_COMMAND": "/usr/bin/ssh -6"}, "/usr/bin/ssh -6"),
    ],
)
def test_connection_is_opened_with_the_users_options(
    configured: str, environment: dict[str, str], command: str
) -> None:
    assert base_command(configured, environment) == command


@pytest.mark.parametrize(
    ("configured", "environment"),
    [
        ("plink -batch", {}),
        ("ssh -v", {}),
        ("ssh -4vv", {}),
        ("ssh 'unclosed", {}),
        ("ssh 2>/tmp/log", {}),
        ("", {"GIT_SSH": "/usr/local/bin/ssh-of-ours"}),
        ("", {"GIT_SSH_COMMAND": ""}),
        ("", {"GIT_SSH_VARIANT": "tortoiseplink"}),
    ],
)
def test_another_command_than_plain_openssh_is_left_alone(
    configured: str, environment: dict[str, str]
) -> None:
    assert base_command(configured, environment) == ""

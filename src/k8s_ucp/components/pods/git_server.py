"""The server that shows the workspace's repositories to Argo CD when that runs in pods."""

from __future__ import annotations

NAME = "git-server"
NAMESPACE = "ucp-git"

"""kind's network: shared by all kind clusters of an engine, so it stays unless we created it.

kind creates it if it is missing. If that was for us, the network's id is recorded in the user's
cache, and it is removed with the last container attached to it, running or not. It stays while a
cluster is being created anywhere: kind has found it already, but no container is attached yet.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from k8s_ucp import locks
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.errors import CommandFailed
from k8s_ucp.workspace import make_private_folder, write_private_file

NAME = "kind"


@contextlib.contextmanager
def noted(engine: ContainerEngine, cache: Path) -> Iterator[None]:
    """Record the network if it is created within the block, even if the block fails.

    No other command removes it meanwhile.
    """
    make_private_folder(cache)
    with _lock_file(cache, engine) as lock:
        locks.share(lock)
        before = engine.network(NAME)
        try:
            yield
        finally:
            if before is None and (made := engine.network(NAME)):
                write_private_file(_note(cache, engine), made + "\n")


def remove_if_ours(engine: ContainerEngine, cache: Path) -> bool:
    """Remove the network if we created it and no container is attached; returns whether.

    While a cluster is being created it stays; deleting that cluster removes it.
    """
    note = _note(cache, engine)
    try:
        ours = note.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return False
    with _lock_file(cache, engine) as lock:
        if not locks.take(lock):
            return False
        found = engine.network(NAME)
        if found == ours:
            if engine.users_of_network(NAME):
                return False
            try:
                engine.remove_network(NAME)
            except CommandFailed:
                # A container was attached meanwhile, so the network is no longer ours.
                return False
        note.unlink(missing_ok=True)
    return found == ours


@contextlib.contextmanager
def _lock_file(cache: Path, engine: ContainerEngine) -> Iterator[int]:
    path = cache / f"kind-network.{engine.name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _note(cache: Path, engine: ContainerEngine) -> Path:
    return cache / f"kind-network.{engine.name}"

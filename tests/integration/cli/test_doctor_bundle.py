"""`ucp doctor --bundle` without a core cluster, which is when a bundle is needed most."""

from __future__ import annotations

import tarfile

from tests.integration.cli.conftest import CORE_ALONE, make_world


def test_bundle_without_a_core_contains_the_files_of_this_machine() -> None:
    canary = "canary-Xk29-sings"
    with make_world() as world:
        world.watched = False  # The test writes a secret into a log on purpose.
        state = world.workspace / ".ucp/demo"
        (state / "logs").mkdir(parents=True)
        (state / "ucp.yaml").write_text(CORE_ALONE)
        (state / "logs/ucp.log").write_text(f"something with {canary}\n")
        (world.workspace / "creds").mkdir()
        credential = world.workspace / "creds/do.token"
        credential.write_text(canary)
        credential.chmod(0o600)
        file = world.workspace / "it.tar.gz"
        # Exit code 1, because the core doesn't answer.
        ended = world.ucp("doctor", "--bundle", str(file), expect=1)
        assert "review it before you share it" in ended.stderr
        with tarfile.open(file) as archive:
            names = archive.getnames()
            log = archive.extractfile("ucp-demo/logs/ucp.log")
            assert log is not None
            assert log.read().decode() == "something with …"
        assert {"ucp-demo/about.json", "ucp-demo/ucp.yaml", "ucp-demo/missing.txt"} <= set(names)
        again = world.ucp("doctor", "--bundle", str(file), expect=2)
        assert "already exists" in again.stderr

"""User-defined functions: their responses, and the errors reported for broken ones."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import crossplane.function.proto.v1.run_function_pb2 as messages
import pytest
from crossplane.function import resource

from k8s_ucp.compositions import user_code
from k8s_ucp.compositions.function import CompositionError
from k8s_ucp.compositions.user_functions import CommittedFunction, UserFunction
from k8s_ucp.errors import UsageError
from k8s_ucp.git.repository import Repository
from tests.unit.compositions.platform import asked, claim

COUNT = """
from crossplane.function import resource
calls = 0

def compose(req, rsp):
    global calls
    calls += 1
    print("not an answer")
    resource.update(rsp.desired.resources["map"], {"kind": "ConfigMap", "data": {"n": str(calls)}})
"""
Ask = Callable[[bytes], Coroutine[Any, Any, bytes]]


def function(folder: Path, main: str, seconds: float = 60) -> UserFunction:
    (folder / "main.py").write_text(main)
    return UserFunction(folder, seconds)


async def count(ask: Ask) -> str:
    """The number that COUNT composed, or the message of the function's failure."""
    request = asked(claim())
    answered = messages.RunFunctionResponse()
    answered.ParseFromString(await ask(request.SerializeToString()))
    assert answered.meta.tag == "tag"
    for each in answered.results:
        return str(each.message)
    found = resource.struct_to_dict(answered.desired.resources["map"].resource)
    return str(found["data"]["n"])


def test_one_process_serves_all_requests(tmp_path: Path) -> None:
    async def run() -> list[str]:
        asked = function(tmp_path, COUNT)
        try:
            return await asyncio.gather(*(count(asked.answer) for _ in range(3)))
        finally:
            await asked.close()

    assert asyncio.run(run()) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("main", "reason"),
    [
        ("def compose(req, rsp):\n    x = {}['size']", "KeyError: 'size' (main.py:2)"),
        ("import nothing_of_that_name", "main.py can't be loaded: ModuleNotFoundError"),
        ("def compose(req, rsp:", "main.py can't be loaded: SyntaxError"),
        ("a = 1", "main.py can't be loaded: AttributeError"),
    ],
)
def test_a_broken_function_returns_its_error(main: str, reason: str, tmp_path: Path) -> None:
    async def run() -> str:
        broken = function(tmp_path, main)
        try:
            return await count(broken.answer)
        finally:
            await broken.close()

    assert asyncio.run(run()).startswith(reason)


@pytest.mark.parametrize(
    ("main", "seconds", "reason"),
    [
        ("import os\ndef compose(req, rsp):\n    os._exit(3)", 60, "ended with exit status 3"),
        ("import os\ndef compose(req, rsp):\n    os.kill(os.getpid(), 9)", 60, "ended by SIGKILL"),
        ("def compose(req, rsp):\n    while True: pass", 2, "no answer within 2 seconds"),
    ],
)
def test_a_crashed_or_hanging_function_is_restarted(
    main: str, seconds: float, reason: str, tmp_path: Path
) -> None:
    async def run() -> str:
        odd = function(tmp_path, main, seconds)
        with pytest.raises(CompositionError, match=reason):
            await odd.answer(asked(claim()).SerializeToString())
        (tmp_path / "main.py").write_text(COUNT)
        odd.seconds = 60
        try:
            return await count(odd.answer)
        finally:
            await odd.close()

    assert asyncio.run(run()) == "1"


def test_a_function_does_not_inherit_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "quiet")
    main = "import os\ndef compose(req, rsp):\n    os.environ['AWS_SECRET_ACCESS_KEY']"

    async def run() -> str:
        curious = function(tmp_path, main)
        try:
            return await count(curious.answer)
        finally:
            await curious.close()

    assert asyncio.run(run()).startswith("KeyError")


def test_a_commit_takes_effect_with_the_next_request(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "core.git")
    repository.folder.mkdir()
    repository.git("init", "--quiet", "--bare", "--initial-branch=main")

    def commit(files: dict[str, str]) -> None:
        below = {f"api/functions/one/{name}": text.encode() for name, text in files.items()}
        made = repository.write_commit("These alone\n", below, parent=None)
        repository.git("update-ref", "refs/heads/main", made)

    async def run() -> list[str]:
        process = UserFunction(tmp_path / "code", 60)
        one = CommittedFunction("one", repository, "refs/heads/main", process)
        found = []
        try:
            for files in (
                {"main.py": COUNT},
                None,
                {"main.py": "from beside import compose", "beside.py": COUNT},
                {"main.py": "from beside import compose"},
            ):
                if files:
                    commit(files)
                found.append(await count(one.answer))
            commit({"README.md": ""})
            with pytest.raises(CompositionError, match=r"has no api/functions/one/main\.py"):
                await count(one.answer)
        finally:
            await process.close()
        return found

    *counts, failed = asyncio.run(run())
    assert counts == ["1", "2", "1"]
    assert "No module named 'beside'" in failed


def test_a_killed_idle_process_is_restarted_without_a_failed_request(tmp_path: Path) -> None:
    async def run() -> list[str]:
        one = function(tmp_path, COUNT)
        found = [await count(one.answer)]
        process = one._process
        assert process
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        try:
            return [*found, await count(one.answer)]
        finally:
            await one.close()

    assert asyncio.run(run()) == ["1", "1"]


def test_functions_are_folders_with_a_main_module() -> None:
    paths = ["api/functions/a/main.py", "api/functions/b/README.md", "api/x.yaml", "main.py"]
    assert user_code.names([*paths, "api/functions/a/below/main.py"]) == ["a"]
    for name in ("Big", "under_score", "taken"):
        with pytest.raises(UsageError, match=name):
            user_code.names([f"api/functions/{name}/main.py"], reserved="taken")

"""Worker threads that are started while others look at them."""

from __future__ import annotations

import threading
from io import StringIO

import pytest

from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue
from k8s_ucp.reconciler.runtime.workers import Workers


def test_a_thread_that_is_about_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, begin = threading.Event(), threading.Event()
    start = threading.Thread.start

    def delayed(thread: threading.Thread) -> None:
        if thread.name == "test 1":
            begins.set()
            begin.wait(5)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", delayed)
    queue = WorkQueue()
    workers = Workers("test", queue, lambda key: None, Log(StringIO()), Metrics(), most=2)
    starter = threading.Thread(target=workers.start)
    starter.start()
    assert begins.wait(5)
    queue.stop()
    threading.Timer(0.1, begin.set).start()
    assert workers.join(5)
    starter.join(5)

"""Threads on which calls run that may be given up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class _Task(Generic[T]):
    """One call, and what came of it once ``done`` can be acquired."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._results: list[T] = []
        self._failure: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:  # noqa: BLE001 - carried to the calling thread, raised there
            self._failure = error

    def result(self) -> T:
        if self._failure is not None:
            raise self._failure
        return self._results[0]


_idle: list[SimpleQueue[_Task[object]]] = []
"""Threads that wait for a task; one that was given up comes back when its call ends after all."""

os.register_at_fork(after_in_child=_idle.clear)


def within(call: Callable[[], T], seconds: float) -> T:
    """Return what ``call`` returns or raise what it raises, unless that takes too long.

    The call runs on a daemon thread that is used again: a thread for each call costs a tenth of a
    millisecond, since it begins without its allocator's and the libraries' memory. One whose time
    is up is left to itself, because Python cannot stop it.

    Raises:
        TimeoutError: There was no answer within ``seconds``.
    """
    task = _Task(call)
    _worker().put(task)  # type: ignore[arg-type]  # the queue's tasks have any result
    if not task.done.acquire(timeout=seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    return task.result()


def _worker() -> SimpleQueue[_Task[object]]:
    try:
        return _idle.pop()
    except IndexError:
        tasks: SimpleQueue[_Task[object]] = SimpleQueue()
        threading.Thread(
            target=_work, args=(tasks,), name="evicortex-provider", daemon=True
        ).start()
        return tasks


def _work(tasks: SimpleQueue[_Task[object]]) -> None:
    while True:
        task = tasks.get()
        task.run()
        _idle.append(tasks)  # before the caller goes on, who may have the next call ready
        task.done.release()
        del task  # an idle thread keeps no result alive

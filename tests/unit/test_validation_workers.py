from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest

from evicortex.validation.workers import within


def test_answers_and_errors_come_through():
    assert within(lambda: 7, 60) == 7
    with pytest.raises(KeyError, match="lost"):
        within(lambda: {}["lost"], 60)
    with pytest.raises(KeyboardInterrupt):
        within(_interrupted, 60)


def _interrupted():
    raise KeyboardInterrupt


def test_one_thread_serves_many_calls_and_is_none_of_the_callers():
    found = {within(threading.current_thread, 60) for _ in range(20)}
    assert len(found) == 1
    (thread,) = found
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_a_call_inside_a_call_gets_a_thread_of_its_own():
    outer, inner = within(lambda: (threading.get_ident(), within(threading.get_ident, 60)), 60)
    assert outer != inner


def test_a_thread_that_was_given_up_serves_again_once_it_is_done():
    release, done = threading.Event(), threading.Event()
    stuck = []

    def wait():
        stuck.append(threading.get_ident())
        release.wait()
        done.set()

    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 s"):
        within(wait, 0.02)
    assert within(threading.get_ident, 60) not in stuck
    release.set()
    assert done.wait(60)
    assert within(lambda: "goes on", 60) == "goes on"


def test_an_idle_thread_keeps_no_result():
    class Large:
        pass

    known = weakref.ref(within(Large, 60))
    within(lambda: None, 60)
    gc.collect()
    assert known() is None


def test_many_threads_at_once():
    answers = []

    def ask(number):
        answers.extend(within(lambda: number, 60) for _ in range(50))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [number for number in range(8) for _ in range(50)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    within(lambda: None, 60)
    child = os.fork()
    if child == 0:
        os._exit(0 if within(lambda: 7, 30) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

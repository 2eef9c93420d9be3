"""What py/ says about a thread: tracing, the eval breaker, the handled exception."""

import _thread
import gc
import signal
import sys
import threading
import time

import pytest

needs_monitoring = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="no sys.monitoring")
TOOL = 3


def test_settrace_and_setprofile(ext):
    seen = []

    def nothing(*_):
        return None

    assert ext.tracing() is False
    old = sys.gettrace()
    sys.settrace(nothing)
    seen.append(ext.tracing())
    sys.settrace(old)
    seen.append(ext.tracing())
    sys.setprofile(nothing)
    seen.append(ext.tracing())
    sys.setprofile(None)
    seen.append(ext.tracing())
    assert seen == [True, False, True, False]


def test_tracing_of_another_thread(ext):
    ready, stop = threading.Event(), threading.Event()

    def traced():
        sys.settrace(lambda *_: None)
        ready.set()
        stop.wait(10)
        sys.settrace(None)

    thread = threading.Thread(target=traced)
    thread.start()
    assert ready.wait(10)
    here = ext.tracing()
    stop.set()
    thread.join()
    assert here is False
    assert ext.tracing() is False


@needs_monitoring
@pytest.mark.parametrize(
    "event",
    [
        "PY_START",
        "LINE",
        "INSTRUCTION",
        "JUMP",
        "CALL",
        "RAISE",
        "EXCEPTION_HANDLED",
        "PY_UNWIND",
        "RERAISE",
    ],
)
def test_global_monitoring(ext, event):
    monitoring = sys.monitoring
    monitoring.use_tool_id(TOOL, "test")
    try:
        idle = ext.tracing()
        monitoring.set_events(TOOL, getattr(monitoring.events, event))
        active = ext.tracing()
        monitoring.set_events(TOOL, 0)
        over = ext.tracing()
    finally:
        monitoring.free_tool_id(TOOL)
    assert (idle, active, over) == (False, True, False)


@needs_monitoring
@pytest.mark.parametrize("event", ["PY_START", "LINE", "CALL", "PY_RETURN"])
def test_local_monitoring(ext, event):
    def watched():
        return 1

    def unwatched():
        return 1

    monitoring = sys.monitoring
    monitoring.use_tool_id(TOOL, "test")
    try:
        before = ext.code_monitored(watched.__code__)
        monitoring.set_local_events(TOOL, watched.__code__, getattr(monitoring.events, event))
        during = ext.code_monitored(watched.__code__), ext.code_monitored(unwatched.__code__)
        monitoring.set_local_events(TOOL, watched.__code__, 0)
        after = ext.code_monitored(watched.__code__)
    finally:
        monitoring.free_tool_id(TOOL)
    assert (before, during, after) == (False, (True, False), False)


def test_code_is_not_monitored_by_default(ext):
    assert ext.code_monitored(test_code_is_not_monitored_by_default.__code__) is False


def test_poll_without_work(ext, no_leak):
    assert ext.poll_now() is None
    no_leak(ext.poll_now)


def on_signal(action, how):
    """Have a signal arrive, let `how` serve it with `action` as its handler."""
    old = signal.signal(signal.SIGUSR1, action)
    try:
        return how()
    finally:
        signal.signal(signal.SIGUSR1, old)


def raise_and_poll(ext):
    """The signal is sent from C code that returns before any poll of ceval's: by a timer."""
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    return ext.poll(2_000_000_000)


def test_a_signal_is_served(ext):
    seen = []

    class Stop(Exception):
        pass

    def handler(number, frame):
        seen.append((number, frame.f_code))
        raise Stop

    old = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Stop) as caught:
            raise_and_poll(ext)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert seen == [(signal.SIGALRM, raise_and_poll.__code__)]
    names = [entry.name for entry in caught.traceback]
    assert names == ["test_a_signal_is_served", "raise_and_poll", "handler"]


def test_an_interrupt_shows_no_poll_function(ext):
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.01, _thread.interrupt_main).start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            ext.poll(2_000_000_000)
    finally:
        signal.signal(signal.SIGINT, old)
    assert [entry.name for entry in caught.traceback] == [
        "test_an_interrupt_shows_no_poll_function"
    ]


def test_an_asynchronous_exception_shows_no_poll_function(ext):
    ctypes = pytest.importorskip("ctypes")
    caught = []
    started = threading.Event()

    def spin():
        started.set()
        ext.poll(2_000_000_000)

    def body():
        try:
            spin()
        except ZeroDivisionError as error:
            caught.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    assert started.wait(10)
    time.sleep(0.01)
    ident = ctypes.c_ulong(thread.ident)
    assert (
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(ZeroDivisionError)) == 1
    )
    thread.join()
    tb = caught[0].__traceback__
    names = []
    while tb is not None:
        names.append(tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    assert names in (["body", "spin"], ["body"])


def test_the_gil_is_given_up(ext):
    """While one thread only polls in C, another one gets its turn."""
    progress = []

    def other():
        progress.append(1)

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        thread.start()
        deadline = time.monotonic() + 10
        while not progress and time.monotonic() < deadline:
            ext.poll(100_000)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert progress == [1]


def test_the_breaker_is_cleared(ext):
    seen = []
    old = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        polled = ext.poll(20_000_000)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert seen == [1]
    assert 1 <= polled < 100


def test_gc_requests_are_served(ext):
    """Where the collector is scheduled on the breaker, polling runs it."""
    old = gc.get_threshold()
    gc.collect()
    runs = []

    def note(phase, _info):
        runs.append(phase)

    gc.callbacks.append(note)
    gc.set_threshold(10)
    try:
        _keep = [[] for _ in range(1000)]
        ext.poll_now()
    finally:
        gc.set_threshold(*old)
        gc.callbacks.remove(note)
    assert "stop" in runs


def test_the_handled_exception(ext):
    error = ValueError()
    before = ext.handled(error)
    assert before is None or before is ext.NULL
    assert sys.exc_info()[1] is error
    assert ext.handled(None) is error
    assert sys.exc_info() == (None, None, None)


def test_exceptions_go_round(ext, no_leak):
    def fail():
        raise KeyError("x")

    error = ext.exc_round_trip(fail)
    assert type(error) is KeyError
    assert error.args == ("x",)
    assert error.__traceback__.tb_frame.f_code is fail.__code__
    assert type(ext.exc_round_trip(lambda: 1 / 0)) is ZeroDivisionError
    no_leak(lambda: ext.exc_round_trip(fail) and None)

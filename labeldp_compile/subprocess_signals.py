"""Signals while a child process is started."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# ^C last, so that its handler is replaced last; see
# ``labeldp_verify.console.interrupts``.
_ENDING = [
    getattr(signal, name) for name in ("SIGALRM", "SIGTERM", "SIGINT") if hasattr(signal, name)
]


@contextmanager
def no_main() -> Iterator[None]:
    """Keep children that are started here from running the caller's script again.

    A script that compiles at its top level would spend ε on another prior in each of them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let only this process handle ^C, which the terminal sends to its children, too.

    A signal does not interrupt the start of a child: half-started children print tracebacks.
    Blocking ^C is not enough for that, since the system gives it to another thread, and Python
    calls the handler in the main one. Signals are handled at the end, so nothing here may wait:
    give a child only as much at its start as a pipe holds, and send it the rest later.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  # only if a child is started

    resource_tracker.ensure_running()  # it would let ^C through again
    with _postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _postponed() -> Iterator[None]:
    """Call Python's handlers, which may raise, at the end."""
    came: dict[int, None] = {}  # in the order of arrival
    if threading.current_thread() is not threading.main_thread():
        yield  # where no handler runs
        return
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    try:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, lambda number, frame: came.setdefault(number))
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def heeding_kills() -> None:
    """Call this in a child: SIGTERM then ends it, though its parent postponed signals."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

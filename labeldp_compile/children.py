"""Processes of our own: what has to hold while one is started."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# ^C last, so that it is the last one for which others stand in; see
# ``labeldp_verify.console.interrupts``.
_ENDING = [
    getattr(signal, name) for name in ("SIGALRM", "SIGTERM", "SIGINT") if hasattr(signal, name)
]


@contextmanager
def no_main() -> Iterator[None]:
    """Children that are started here do not run the caller's script again.

    A script that compiles at its top level would pay for another prior in each of them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Processes that are made here leave ^C, which the terminal sends to all, to this one.

    And they are made to the end: a child that was told half of what it is to do prints a traceback.
    Blocking ^C is not enough for that, since the system gives it to another thread, and Python
    calls the handler in the main one. What comes in between is heard at the end, so nothing may
    wait: give a child little at its start, which a pipe holds, and send it the rest.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  # for those who start one

    resource_tracker.ensure_running()  # it would let ^C through again
    with _postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _postponed() -> Iterator[None]:
    """Handlers of Python's that may raise are called at the end."""
    came: dict[int, None] = {}  # in their order
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
    """In a child: a signal ends it, though it was forked while its parent postponed them."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

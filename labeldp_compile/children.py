"""Processes of our own: what has to hold while one is started."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


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
    """Processes that are made here leave ^C, which the terminal sends to all, to this one."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  # for those who start one

    resource_tracker.ensure_running()  # it would let ^C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

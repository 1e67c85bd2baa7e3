"""^C ends a command with exit code 130 and one line, at any time.

Python's own way is an exception wherever the signal falls: in the middle of an import, in click,
or at the interpreter's end. Each prints another traceback.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

EXIT_CODE = 128 + signal.SIGINT
_AGAIN = 0.2  # seconds


class Interrupted(SystemExit):
    """The end that a signal asks for: no other error, nor another's exit, comes before it."""


def interruption(error: BaseException | None) -> Interrupted | None:
    """The one that an error was made of, or came in the way of; None if there was none.

    Libraries turn exceptions of any kind into their own errors, for example while they load.
    """
    waiting, seen = [error], set[int]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, Interrupted):
            return found
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            waiting += [found.__context__, found.__cause__]
    return None


def require_uninterrupted(error: BaseException) -> None:
    """Raise the end that a signal asked for, if that is where an error comes from."""
    if stopped := interruption(error):
        raise stopped from None


class _Handler:
    """The action of ^C depends on what there is to clean up."""

    def __init__(self, name: str) -> None:
        self._name, self.interrupted = name, False  # even if the exception was lost
        self._tell_of = sys.unraisablehook
        self.running = self.done = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.done:
            return
        if number == signal.SIGINT:
            # Not through sys.stderr, in whose code the signal may have fallen.
            os.write(2, f"\n{self._name}: interrupted\n".encode())
            if not self.running:
                os._exit(EXIT_CODE)
            self.interrupted = True
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.interrupted and not self._is_cleaning_up():
            raise Interrupted(EXIT_CODE)

    def end(self) -> None:
        """Only the interpreter's own end is left."""
        self.done = True
        if hasattr(signal, "pthread_kill"):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one may be on its way

    def begin(self) -> None:
        """From here on there may be something to clean up."""
        if hasattr(signal, "pthread_kill"):
            signal.signal(signal.SIGALRM, self)
            reading, writing = os.pipe()
            os.set_blocking(writing, False)
            signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
            main = threading.get_ident()
            threading.Thread(target=self._insist, args=(reading, main), daemon=True).start()
        sys.unraisablehook = self._lose
        self.running = True

    def _lose(self, lost: sys.UnraisableHookArgs) -> None:
        """Say nothing of an end that fell where nothing can be raised: it is asked for again.

        Such places are destructors and callbacks of weak references.
        """
        if interruption(lost.exc_value) is None:
            self._tell_of(lost)

    def _insist(self, signals: int, main: int) -> None:
        """In a thread of its own: wake the main thread until it ends.

        A ^C right before it begins to wait, at a question or for a pipe, is seen after the wait;
        and some code of Python's own clears every exception: input() does.
        """
        while os.read(signals, 1) != bytes([signal.SIGINT]):
            pass
        while not self.done:
            time.sleep(_AGAIN)
            if not self.done:
                signal.pthread_kill(main, signal.SIGALRM)

    def _is_cleaning_up(self) -> bool:
        """Whether code runs that handles such an end, or that closes a generator.

        While an exception leaves a loop, the loop's generator is closed, and nothing handles the
        exception yet.
        """
        handled = sys.exception()
        while not isinstance(handled, Interrupted | GeneratorExit | None):
            handled = handled.__context__
        return handled is not None


def run(name: str, load: Callable[[], Callable[[], Any]]) -> None:
    """Load a command, and run it; ``name`` is that of the program.

    While it loads, ^C ends the process at once: nothing has begun. While it runs, the first ^C is a
    SystemExit, which closes and removes unfinished files; the second ends the process at once.
    Where ^C is already ignored, as with nohup, it stays ignored.
    """
    handler = _Handler(name)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        load()()
        return
    signal.signal(signal.SIGINT, handler)
    command = load()
    try:
        handler.begin()
        command()
    except BaseException as error:
        handler.end()
        stopped = Interrupted(EXIT_CODE) if handler.interrupted else interruption(error)
        if stopped:
            raise stopped from None
        raise
    handler.end()
    if handler.interrupted:
        sys.exit(EXIT_CODE)

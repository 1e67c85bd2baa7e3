"""Write the parts of a table in several processes, which end when this one does.

Each process randomizes for itself: it is started afresh and not forked, so that no words of this
one are in it. Parts are handed out in the order of their names. What goes wrong is what would have
gone wrong first without them: after an error only parts before that one are written to the end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.ids import IntegerIds
from labeldp_runtime.whole_file import say_removed
from numpy.typing import NDArray

from labeldp_compile.children import no_main, uninterrupted
from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.arrow_memory import use_small_pool
from labeldp_compile.tabular.one_file import Listener, Private, Randomize, write_file
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.tabular.table_sink import output_format

MAX_WORKERS = 256


@dataclass(frozen=True)
class Workers:
    """Processes that write parts.

    Attributes:
        count: at most so many at a time.
        open: what they randomize with, made in each of them; it is pickled.
    """

    count: int
    open: Callable[[], Randomize]


@dataclass(frozen=True)
class _Failed:
    """A part that a process did not finish."""

    error: Exception


_DONE = None
_Message = int | NDArray[np.uint64] | _Failed | None  # rows written, digests of ids


def write_parts(
    parts: Sequence[TableReader],
    folder: Path,
    private: Private,
    workers: Workers,
    listener: Listener,
) -> None:
    """Write each part under its name into a folder, which is removed by the caller on errors.

    ``listener`` hears of all rows, and of the ids in the order of the parts. Raises the error of
    the first part that has one; DataError if a process is killed, InputError if none starts.
    """
    # What is pickled: the processes make their own.
    described = replace(private, randomize=workers.open)
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(_child(described, folder))
            for _ in range(min(workers.count, len(parts)))
        ]
        _Parts(parts, listener).write_with(children)


class _Child:
    """A process, and what it writes."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process, self.connection = process, connection
        self.part = -1

    def begin(self, number: int, part: TableReader) -> None:
        """Let it write a part. Where it has ended already, reading from it says so."""
        self.part = number
        with contextlib.suppress(OSError):
            self.connection.send(part)

    def message(self, path: Path) -> _Message:
        """What it says next: that it failed, if it is no more."""
        try:
            said: _Message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            reason = f"the process that wrote it {how}; with fewer --jobs less memory is needed"
            return _Failed(refused(path, reason))
        return said


class _Parts:
    """Who writes what, and what is known of it."""

    def __init__(self, parts: Sequence[TableReader], listener: Listener) -> None:
        self._parts, self._listener = parts, listener
        self._waiting = deque(range(len(parts)))
        self._failed: dict[int, Exception] = {}
        # Ids are told part by part: of those that are ahead of their turn the digests are kept.
        self._digests: dict[int, list[NDArray[np.uint64]]] = {}
        self._finished: set[int] = set()
        self._turn = 0

    def write_with(self, children: Sequence[_Child]) -> None:
        busy: dict[Connection, _Child] = {}
        for child in children:
            self._begin(child, busy)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                if ready in busy:  # and was not ended by the failure of another one
                    self._hear(busy.pop(ready), busy)
        if self._failed:
            first = min(self._failed)
            self._finished |= {first}
            self._tell_ids()  # those that were read before: one of them may be there twice
            raise self._failed[first]

    def _begin(self, child: _Child, busy: dict[Connection, _Child]) -> None:
        if self._waiting:
            number = self._waiting.popleft()
            child.begin(number, self._parts[number])
            busy[child.connection] = child

    def _hear(self, child: _Child, busy: dict[Connection, _Child]) -> None:
        message = child.message(self._parts[child.part].path)
        busy[child.connection] = child
        if isinstance(message, int):
            self._listener.rows(message)
        elif isinstance(message, np.ndarray):
            self._digests.setdefault(child.part, []).append(message)
            self._tell_ids()
        else:
            del busy[child.connection]
            if isinstance(message, _Failed):
                self._fail(child.part, message.error, busy)
                return
            self._finished.add(child.part)
            self._tell_ids()
            self._begin(child, busy)

    def _fail(self, number: int, error: Exception, busy: dict[Connection, _Child]) -> None:
        """What comes after this part is in vain."""
        self._failed[number] = error
        self._waiting.clear()
        for connection, other in list(busy.items()):
            if other.part > number:
                other.process.kill()
                del busy[connection]

    def _tell_ids(self) -> None:
        while True:
            for digests in self._digests.pop(self._turn, ()):
                self._listener.ids(IntegerIds(digests))
            if self._turn not in self._finished:
                return
            self._turn += 1


@contextlib.contextmanager
def _child(private: Private, folder: Path) -> Iterator[_Child]:
    """A process that ends with this block, at the latest."""
    # Forked children would share locks of threads that they do not have, and words.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    living, alive = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(folder, theirs, living), daemon=True)
    try:
        try:
            with no_main(), uninterrupted():
                process.start()
        except OSError as error:
            raise InputError(f"--jobs: a process cannot be started: {error.strerror}") from None
        finally:
            theirs.close()
            living.close()
        with contextlib.suppress(OSError):  # it has ended already, which reading from it says
            ours.send(private)
        yield _Child(process, ours)
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()
        alive.close()


def _work(folder: Path, connection: Connection, living: Connection) -> None:
    """In the child: write what is asked for, until nothing is."""
    # A signal to all of them is for the first process, which ends the others.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(living,), daemon=True).start()
    use_small_pool()
    opened: Randomize | None = None
    private: Private | None = None
    while True:
        try:
            private = private or connection.recv()
            part: TableReader = connection.recv()
        except EOFError:
            return
        try:
            opened = opened or private.randomize()
            listener = Listener(connection.send, lambda ids: connection.send(ids.digests()))
            own, place = replace(private, randomize=opened), folder / part.path.name
            write_file(part, place, output_format(part.path), own, listener, say_removed)
        except Exception as error:
            known = isinstance(error, InputError | DuplicateIdError)
            said: _Message = _Failed(error if known else RuntimeError(repr(error)))
        else:
            said = _DONE
        try:
            connection.send(said)
        except OSError:  # nobody hears it
            os._exit(1)


def _end_with(living: Connection) -> None:
    """End this process when the one that started it has ended, however that came."""
    with contextlib.suppress(EOFError, OSError):
        living.recv()
    os._exit(1)

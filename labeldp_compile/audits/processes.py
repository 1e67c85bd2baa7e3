"""Draw in forked and in new processes: no process may repeat the draws of another."""

import contextlib
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.audits.target import AuditTarget, Draw
from labeldp_compile.children import heeding_kills, uninterrupted
from labeldp_compile.errors import InputError

CHILDREN = 2  # of each kind
_SECONDS = 120  # for a child to answer; a function may deadlock in a child


def drawn_in_children(
    target: AuditTarget, draw: Draw, labels: NDArray[Any]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Outputs by process, for the same labels [n], and what could not be tried.

    ``draw`` is the opened target, which was used before; forked children inherit it. Started
    children open the target again, as a service does when it restarts.
    """
    results: dict[str, NDArray[Any]] = {"this process": draw(labels)}
    failures: list[str] = []
    kinds: list[tuple[str, str, Draw | None]] = [("started", "spawn", None)]
    if "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin":
        kinds.insert(0, ("forked", "fork", draw))
    with contextlib.ExitStack() as stack:
        children = {
            f"{word} process {number}": stack.enter_context(
                _started(method, target, inherited, labels)
            )
            for word, method, inherited in kinds
            for number in range(1, CHILDREN + 1)
        }
        for name, child in children.items():
            try:
                results[name] = _answer_of(child)
            except (EOFError, TimeoutError, OSError, InputError) as error:
                failures.append(f"{name}: {error or 'ended without an answer'}")
    return results, failures


@contextlib.contextmanager
def _started(
    method: str, target: AuditTarget, draw: Draw | None, labels: NDArray[Any]
) -> Iterator[Connection]:
    """The connection to a process that is ended with this block."""
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    inherited = None if draw is None else (draw, labels)
    child = context.Process(target=_answer, args=(inherited, theirs), daemon=True)
    try:
        with warnings.catch_warnings():
            # Python warns of forks beside threads; this test is about such forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            with uninterrupted():
                child.start()
        theirs.close()
        if inherited is None:
            with contextlib.suppress(OSError):  # it has ended already, without an answer
                ours.send((target, labels))
        yield ours
    finally:
        if child.pid is not None:
            child.kill()
            child.join()
        ours.close()


def _answer_of(receiving: Connection) -> NDArray[Any]:
    if not receiving.poll(_SECONDS):
        raise TimeoutError(f"no answer within {_SECONDS} seconds")
    answer = receiving.recv()
    if isinstance(answer, str):
        raise InputError(answer)
    return np.asarray(answer)


def _answer(inherited: tuple[Draw, NDArray[Any]] | None, connection: Connection) -> None:
    """In the child: draw, and send the outputs; a child that is no fork first reads its task."""
    heeding_kills()
    try:
        if inherited is None:
            target, labels = connection.recv()
            inherited = target.open(), labels
        draw, labels = inherited
        answer: Any = draw(labels)
    except Exception as error:
        answer = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    with contextlib.suppress(OSError):  # the parent has stopped reading
        connection.send(answer)
    connection.close()

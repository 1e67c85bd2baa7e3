"""The audited function from labels to outputs, in this process and in others.

No process may repeat the draws of another: forked children inherit the opened function, and started
children open it again, as a service does when it restarts.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import Randomizer, RuntimeArtifactError
from labeldp_verify.console.interrupts import require_uninterrupted
from labeldp_verify.printable import clipped
from labeldp_verify.strict import read_decimal, read_whole
from numpy.typing import NDArray

from labeldp_compile.audits.cells import Draw, told_from_zero
from labeldp_compile.errors import InputError
from labeldp_compile.subprocess_signals import heeding_kills, uninterrupted

_RANGE = re.compile(r"(-?[0-9]{1,15})\.\.(-?[0-9]{1,15})")
_MOST = 10_000_000


def parse_labels(text: str) -> NDArray[Any]:
    """[n] distinct labels, n ≥ 2: int64, float64, or text as objects. Raises InputError."""
    whole = _RANGE.fullmatch(text.strip())
    if whole:
        low, high = map(int, whole.groups())
        if not 0 < high - low < _MOST:
            raise InputError(f"--labels {text}: expected a range of 2 to {_MOST:,} integers")
        return np.arange(low, high + 1, dtype=np.int64)
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    labels = _as_numbers(parts)
    if len(labels) < 2:
        raise InputError(f"--labels {text}: expected at least two labels, such as 0..52 or a,b,c")
    return labels


def _as_numbers(parts: list[str]) -> NDArray[Any]:
    for read, dtype in ((read_whole, np.int64), (lambda t: float(read_decimal(t)), np.float64)):
        try:
            return np.array(sorted({read(part) for part in parts}), dtype=dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(parts, dtype=object)


_NUMBERS = "biuf"
_REASON_COLUMNS = 200
_PLAIN = {str, bytes, int, float, bool, type(None)}


@dataclass(frozen=True)
class ArtifactTarget:
    """An artifact as a service runs it: through labeldp-runtime, with fresh random bits.

    All rows have the public columns of ``row``, so that they use one table; ``group`` is its name.
    """

    path: Path
    group: str | None = None
    row: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Its name in the report."""
        return "labeldp_runtime" + ("" if self.group is None else f", group {self.group}")

    def open(self) -> Draw:
        """The loaded randomizer. Raises InputError if this platform cannot run it."""
        try:
            randomizer: Any = Randomizer.load(self.path, prepared=True)  # of made-up labels
        except RuntimeArtifactError as error:
            raise InputError(str(error)) from None

        def draw(labels: NDArray[Any]) -> Any:
            public = {name: [value] * len(labels) for name, value in self.row} or None
            return randomizer(labels, columns=public)

        return _checked(draw, str(self.path))


@dataclass(frozen=True)
class FunctionTarget:
    """Any randomizer ``module:function`` that maps an array of labels [n] to n outputs.

    The module is imported from Python's path or from the working directory.
    """

    name: str

    def open(self) -> Draw:
        """The imported function. Raises InputError if it does not exist."""
        module, _, path = self.name.partition(":")
        if not module or not path:
            raise InputError(f"--callable {self.name}: expected MODULE:FUNCTION")
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            # Standard output is for the report.
            with contextlib.redirect_stdout(sys.stderr):
                function: Any = importlib.import_module(module)
        except (Exception, SystemExit) as error:
            require_uninterrupted(error)
            raise InputError(
                f"--callable {self.name}: cannot import {module!r}: {_reason(error)}"
            ) from None
        try:
            function = attrgetter(path)(function)
        except AttributeError:
            raise InputError(f"--callable {self.name}: {module!r} has no {path!r}") from None
        if not callable(function):
            raise InputError(f"--callable {self.name}: is not a function")
        return _checked(function, f"--callable {self.name}")


# Both can be pickled and opened in any process.
AuditTarget = ArtifactTarget | FunctionTarget


def _checked(function: Callable[[Any], Any], source: str) -> Draw:
    """The function with checks; it returns arrays [n] of numbers or of other values.

    The function may write into its argument, and may return the same buffer twice.
    """

    def draw(labels: NDArray[Any]) -> NDArray[Any]:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                outputs = _array(function(labels.copy()))
        except (Exception, SystemExit) as error:
            require_uninterrupted(error)
            # An exit code of 0 would mean "nothing found".
            raise InputError(f"{source}: raised {_reason(error)}") from None
        if outputs.shape != labels.shape:
            raise InputError(
                f"{source}: returned an array of shape {outputs.shape} for {len(labels):,} "
                "labels; expected one output per label"
            )
        if outputs.dtype.kind == "b":
            return outputs.astype(np.int64)
        if outputs.dtype.kind in _NUMBERS:
            return told_from_zero(outputs)
        outputs = outputs.astype(object)
        others = set(map(type, outputs.tolist())) - _PLAIN
        if others:
            kind = others.pop().__name__
            raise InputError(f"{source}: returned a {kind}; expected numbers or text")
        return outputs

    return draw


def _array(given: Any) -> NDArray[Any]:
    """A copy of what a function returned, in which different outputs stay different.

    Numpy makes texts of a list of numbers and texts, and floats of large integers beside floats.
    """
    if not isinstance(given, list | tuple):
        return np.array(given)
    items = [item.item() if isinstance(item, np.generic) else item for item in given]
    if set(map(type, items)) <= {bool, int, float}:
        numbers = np.array(items)
        there = zip(numbers.tolist(), items, strict=True)
        if all(number == item or math.isnan(item) for number, item in there):
            return numbers
    return np.fromiter(items, object, len(items))


def _reason(error: BaseException) -> str:
    return clipped(f"{type(error).__name__}: {error}", _REASON_COLUMNS)


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

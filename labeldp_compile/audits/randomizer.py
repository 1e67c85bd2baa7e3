"""The audited function from labels to outputs, in this process and in others.

No process may repeat the draws of another: forked children inherit the opened function, and started
children open it again, as a service does when it restarts.

Outputs are drawn and counted in a few cells, and a verified artifact certifies each cell. A cell is
a function of the output, so ε-DP is kept: one output each, or intervals if there are too many
outputs. Cells are chosen from draws that no test uses again.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import Randomizer, RuntimeArtifactError
from labeldp_verify.analysis import at_most, lattice_indices, matrix
from labeldp_verify.artifact import Table
from labeldp_verify.console.interrupts import require_uninterrupted
from labeldp_verify.forms import AdditiveRandomizer, output_array
from labeldp_verify.printable import clipped
from labeldp_verify.strict import read_decimal, read_whole
from numpy.typing import NDArray

from labeldp_compile.errors import InputError
from labeldp_compile.observer import Observer
from labeldp_compile.subprocess_signals import heeding_kills, uninterrupted

Counts = NDArray[np.int64]
Draw = Callable[[NDArray[Any]], NDArray[Any]]
"""An opened randomizer: outputs [n] of labels [n]."""
CALL = 1 << 16  # labels in a call
MAX_VALUES = 4096
_QUANTILES = 1024
_ONCE = 0.05  # of the pilot: more outputs that occur once are not counted one by one
_LISTED = 4
_NAME_COLUMNS = 40
_MINUS_ZERO = -math.ulp(0.0)  # stands for −0, which no file has as an output, and which equals 0


def told_from_zero(outputs: NDArray[Any]) -> NDArray[Any]:
    """Numbers [n] in which −0 is not equal to 0: its sign could say what the label was."""
    if outputs.dtype.kind != "f" or not (minus := np.signbit(outputs) & (outputs == 0)).any():
        return outputs
    return np.where(minus, _MINUS_ZERO, outputs.astype(np.float64))


def as_returned(output: Any) -> Any:
    """The output that ``told_from_zero`` was given."""
    return -0.0 if output == _MINUS_ZERO else output


class ValueCells:
    """A cell for each value; all other values share the last cell."""

    def __init__(self, values: NDArray[Any]) -> None:
        """Numbers, or an object array of hashable values; distinct."""
        self._is_text = values.dtype == object
        self._values = values if self._is_text else np.sort(values)
        self._cells = {value: i for i, value in enumerate(values)} if self._is_text else {}
        self.count = len(values) + 1

    def indices(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """[n] the cell of each output."""
        other = self.count - 1
        if self._is_text:
            cells = map(self._cells.get, outputs.tolist(), repeat(other))
            return np.fromiter(cells, np.int64, len(outputs))
        if outputs.dtype == object or not other:
            return np.full(len(outputs), other)
        position = np.minimum(np.searchsorted(self._values, outputs), other - 1)
        return np.where(self._values[position] == outputs, position, other)

    def name(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.count - 1:
            return "any other output"
        value = self._values[cell]
        return clipped(str(value), _NAME_COLUMNS) if self._is_text else f"{as_returned(value):g}"


class IntervalCells:
    """Intervals between increasing edges, e₀ ≤ output < e₁, and a cell for NaN and non-numbers."""

    def __init__(self, edges: NDArray[Any]) -> None:
        """Distinct increasing numbers; below the first and above the last there is a cell each."""
        self.edges = edges
        self.count = len(edges) + 2

    def indices(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """[n] the cell of each output."""
        if outputs.dtype == object:
            return np.full(len(outputs), self.count - 1)
        position = np.searchsorted(self.edges, outputs, side="right")
        return np.where(np.isnan(outputs), self.count - 1, position)

    def name(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.count - 1:
            return "not a number"
        low = "-∞" if cell == 0 else f"{self.edges[cell - 1]:g}"
        high = "∞" if cell == len(self.edges) else f"{self.edges[cell]:g}"
        return f"[{low}, {high})"


# A partition of all outputs into ``count`` cells; the last holds everything else.
OutputCells = ValueCells | IntervalCells


def describe(cells: OutputCells, chosen: NDArray[np.bool_]) -> str:
    """A set of cells in words; ``chosen`` [count] marks its members."""
    members = np.flatnonzero(chosen).tolist()
    more = len(members) - _LISTED
    listed = ", ".join(map(cells.name, members[:_LISTED]))
    return listed + (f" and {more:,} more" if more > 0 else "")


def choose_cells(pilot: NDArray[Any]) -> OutputCells:
    """Cells for outputs like these: single values if they recur, else equally frequent intervals.

    Towards both ends the intervals become smaller, down to the rarest outputs of the pilot. Raises
    InputError for texts that do not recur: they have no intervals.
    """
    if pilot.dtype == object:
        ordered = sorted(Counter(pilot.tolist()).items(), key=lambda seen: (-seen[1], str(seen[0])))
        if not _recur(np.array([count for _, count in ordered])):
            raise InputError(
                "too many outputs are texts that occur only once, and nothing can be counted: "
                "return numbers, or give more --samples"
            )
        values = np.empty(min(len(ordered), MAX_VALUES), dtype=object)
        values[:] = [value for value, _ in ordered[:MAX_VALUES]]
        return ValueCells(values)
    numbers = pilot[~np.isnan(pilot)]
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= MAX_VALUES and _recur(counts):
        return ValueCells(values)
    return IntervalCells(edges_of(numbers))


def _recur(counts: NDArray[np.int64]) -> bool:
    """Whether most further outputs will be among those that were counted.

    The share of those that occurred once estimates the probability of all others (Good and Turing).
    Of noise that is continuous, no output occurs twice, and all would be in the cell of the others.
    """
    return int((counts == 1).sum()) <= _ONCE * int(counts.sum())


def edges_of(numbers: NDArray[Any]) -> NDArray[Any]:
    """Distinct quantiles of the numbers, and the order statistics 1, 2, 4, 8, … from both ends."""
    ordered, n = np.sort(numbers), len(numbers)
    spread = np.linspace(0, n - 1, _QUANTILES).astype(np.int64)
    ends = 2 ** np.arange(int(np.log2(n)), dtype=np.int64)
    return np.unique(ordered[np.concatenate([spread, ends, n - 1 - ends])])


class Reference:
    """The certified side of an audit."""

    def __init__(self, decoded: Table, labels: list[int]) -> None:
        """``labels`` are the indices of the audited labels."""
        self._r, self._rows, self._domain = decoded.randomizer, labels, decoded.domain
        self._values = None
        if not isinstance(self._r, AdditiveRandomizer):
            self._values = output_array(self._r.values)
        elif self._r.outputs <= MAX_VALUES:
            points = range(self._r.low, self._r.high + 1)
            self._values = np.array([self._r.value(t) for t in points])

    def inputs(self) -> NDArray[Any]:
        """[L] the audited labels, as the randomizer takes them."""
        return output_array([self._domain.listed[y] for y in self._rows])

    def cells(self, pilot: NDArray[Any]) -> OutputCells:
        """A cell for each output if they are few, else intervals (categories: the audited ones)."""
        if self._values is None:
            assert isinstance(self._r, AdditiveRandomizer)
            known = pilot[self.known(pilot)].astype(float)
            first = np.array([self._r.value(self._r.low)])
            return IntervalCells(edges_of(known if len(known) else first))
        if len(self._values) <= MAX_VALUES:
            return ValueCells(self._values)
        if self._values.dtype == np.float64:
            # The outputs of the audited labels reveal most, so they keep cells of their own.
            audited_labels = np.searchsorted(self._values, np.asarray(self.inputs(), dtype=float))
            spread = np.arange(0, len(self._values), len(self._values) // (MAX_VALUES // 4))
            edges = np.unique(np.concatenate([spread, audited_labels, audited_labels + 1]))
            return IntervalCells(self._values[edges[edges < len(self._values)]])
        audited = [y for y in self.inputs().tolist() if y in set(self._values.tolist())]
        return ValueCells(output_array(audited or self._values[:1].tolist()))

    def known(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """[n] whether each value is an output of the file."""
        if self._values is not None:
            cells = ValueCells(self._values)
            return cells.indices(outputs) < cells.count - 1
        assert isinstance(self._r, AdditiveRandomizer)
        if outputs.dtype == object:
            return np.zeros(len(outputs), dtype=bool)
        return lattice_indices(self._r, outputs) >= 0

    def probabilities(self, cells: OutputCells) -> NDArray[np.float64]:
        """[L, cells] certified probabilities, correct to a few units in the last place."""
        result = np.zeros((len(self._rows), cells.count))
        if self._values is None:
            assert isinstance(cells, IntervalCells) and isinstance(self._r, AdditiveRandomizer)
            before = lattice_indices(self._r, cells.edges) - 1
            for position, label in enumerate(self._rows):
                cumulated = at_most(self._r, label, before)
                result[position, :-1] = np.diff(cumulated, prepend=0.0, append=1.0)
            return result
        places = cells.indices(self._values)
        for position, label in enumerate(self._rows):
            row = matrix(self._r, [label])[0]
            result[position] = np.bincount(places, weights=row, minlength=cells.count)
        return result


@dataclass(frozen=True)
class Tally:
    """Counts [labels, cells] of outputs, and how many samples each label has [labels]."""

    counts: Counts
    samples: Counts

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(self.counts + other.counts, self.samples + other.samples)

    def seen(self, label: int, cells: NDArray[np.bool_]) -> tuple[int, int]:
        """How often a label gave one of the cells, and in how many samples."""
        return int(self.counts[label][cells].sum()), int(self.samples[label])


class Sampler:
    """Draws from one randomizer, counts outputs by label and cell, and informs an observer.

    Attributes:
        opened: the randomizer itself, which forked processes inherit.
        labels: [L] its labels; methods name them by their indices.
        drawn: how many labels it has randomized.
        cells: of the outputs; they are chosen after a pilot was drawn.
    """

    cells: OutputCells

    def __init__(self, opened: Draw, labels: NDArray[Any], observer: Observer) -> None:
        """Nothing is drawn yet."""
        self.opened, self.labels, self._observer, self.drawn = opened, labels, observer, 0

    def draw(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Outputs [n] of labels [n]."""
        outputs = self.opened(labels)
        self.count(len(labels))
        return outputs

    def count(self, labels: int) -> None:
        """Add to the number of randomized labels; another process may have randomized them."""
        self.drawn += labels
        self._observer.rows(labels)

    def rows(self, label: int, size: int) -> NDArray[Any]:
        """[size] one label."""
        return np.repeat(self.labels[label : label + 1], size)

    def pilot(self, each: int) -> NDArray[Any]:
        """Outputs of all labels: ``each`` from calls with one label, as many from one with all."""
        parts = [self.draw(self.rows(y, each)) for y in range(len(self.labels))]
        every = np.random.default_rng().permutation(np.repeat(self.labels, each))
        return np.concatenate([*parts, self.draw(every)])

    def alone(self, chosen: Sequence[int], samples: int) -> Tally:
        """Count ``samples`` samples of each chosen label, in calls with no other label."""
        tally = self._empty()
        for label in chosen:
            for size in _calls(samples):
                cells = self.cells.indices(self.draw(self.rows(label, size)))
                tally.counts[label] += np.bincount(cells, minlength=self.cells.count)
                tally.samples[label] += size
        return tally

    def mixed(self, samples: int) -> Tally:
        """Count about ``samples`` samples of each label, in calls with labels in random order."""
        tally, generator = self._empty(), np.random.default_rng()
        L, M = tally.counts.shape
        for size in _calls(samples * L):
            rows = generator.integers(0, L, size)
            cells = self.cells.indices(self.draw(self.labels[rows]))
            tally.counts[:] += np.bincount(rows * M + cells, minlength=L * M).reshape(L, M)
            tally.samples[:] += np.bincount(rows, minlength=L)
        return tally

    def _empty(self) -> Tally:
        L = len(self.labels)
        return Tally(np.zeros((L, self.cells.count), np.int64), np.zeros(L, np.int64))


def _calls(samples: int) -> list[int]:
    """Sizes of calls that add up to ``samples``."""
    whole, rest = divmod(samples, CALL)
    return [CALL] * whole + ([rest] if rest else [])


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

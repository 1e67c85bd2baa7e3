"""From the priors of all tables to their integers, and the most bytes that they can take.

The bounds on bytes hold for every prior, so they are known before any ε is spent.

If the tables depend on the prior, the mechanism makes them fit: it merges rare outputs, or uses
fewer.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from labeldp_verify import steps
from labeldp_verify.forms import (
    MAX_WORD_BITS,
    CategoricalDomain,
    Domain,
    GroupedWindows,
    Groups,
    Integers,
    JointDomain,
    WindowRandomizer,
    check_groups,
)
from labeldp_verify.graph import BucketGrid, bucket_grid, canonical_json, choose_grid

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import DualBound, Problem, RadiusBound, Solved
from labeldp_compile.observer import QUIET, Observer, time_left
from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import Spec

# Graph, certificate and test vectors at their longest, without what is counted for each label:
# at most 204, 510 and 680 vectors, and eight fractions of 2,000 digits.
_FIXED = {"window": 45_000, "additive": 90_000, "table": 95_000}
_VECTORS = {"window": 204, "additive": 510, "table": 680}
_FIXED_COLUMN = 25_000  # nodes, and numbers in the vectors, of one column of several
_CLAIMS = 2_000  # of one table of several
_FLOAT = 27  # a float64 as text, with quotes and a comma
_CODE = 11  # an int64 in an attribute


def most_bytes(spec: Spec, epsilon: Fraction, rows: int | None) -> int:
    """The most bytes of the spec's artifact, for any prior; ``rows`` is n, if it is known.

    ``epsilon`` is ε₂. Raises ValueError if the artifact could be larger than a verifier reads.
    """
    besides = _besides_tables(spec, rows)
    room = steps.MAX_FILE_BYTES - besides
    tables = spec.named_mechanism.most_table_bytes(spec.domain, epsilon, room)
    if tables > room:
        raise ValueError(
            f"the file could have {besides + tables:,} bytes, and a verifier reads at most "
            f"{steps.MAX_FILE_BYTES:,}: use fewer labels, or shorter names"
        )
    return besides + tables


def fits(spec: Spec, rows: int | None, randomizer: WindowRandomizer) -> bool:
    """Whether a file with these tables is small enough for the verifier."""
    tables = bucket_grid.table_bytes(randomizer)
    return tables is not None and _besides_tables(spec, rows) + tables <= steps.MAX_FILE_BYTES


def _besides_tables(spec: Spec, rows: int | None) -> int:
    """Everything but the tables of numbers."""
    domain, mechanism = spec.domain, spec.named_mechanism
    column, auto = (_json_bytes(text) for text in (spec.label.key, spec.auto_reason or ""))
    listed = domain.size * _FLOAT * len(mechanism.proof(spec.loss, domain.size))
    return (
        _FIXED[mechanism.form]
        + column
        + auto
        + _names(domain, mechanism.form)
        + _weights(spec, rows)
        + listed
    )


def _names(domain: Domain, form: str) -> int:
    """The categories: in the graph's encoder and as outputs, in certificate and test vectors."""
    if isinstance(domain, JointDomain):
        # Each column is named in encoder, certificate and vectors as in a file of its own; of
        # numbers the outputs are listed.
        listed = sum(_CODE * part.size for part in domain.parts)
        return listed + sum(_FIXED_COLUMN + _names(part, form) for part in domain.parts)
    if not isinstance(domain, CategoricalDomain):
        return 0
    texts = [_json_bytes(value) for value in domain.values]
    certificate = sum(texts) + len(texts) + _json_bytes(domain.default)
    vectors = 2 * _VECTORS[form] * max(texts)
    if not domain.is_text:
        return certificate + vectors + 2 * _CODE * len(texts)
    raw = sum(len(str(value).encode()) + 6 for value in domain.values)
    # Of RRTop-k an output has three segments: base, own and even.
    return certificate + vectors + _CODE * len(texts) + 4 * raw


def _json_bytes(value: object) -> int:
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def _weights(spec: Spec, rows: int | None) -> int:
    """The prior as text. The mean of its k integers is at most n, and log is concave."""
    weights = spec.known_weights
    if weights is not None:
        return sum(len(str(weight)) + 1 for weight in weights)
    most = 2**63 if rows is None else rows
    return math.ceil(spec.domain.size * (math.log10(most + 1) + 2))


# From the priors of all tables to their integers: one table alone, or several in one lookup.
#
# Several tables share one lookup. The narrowest segment of all tables sets the width of its
# buckets. So a table with wider segments gets fewer random bits: its lines are then shorter, and
# need as few buckets as they would alone. All lines together have 63 bits; the rest of these
# decides how many bits the other tables get.


_TRIED_BITS = 44  # at which the widths of the segments are looked at
_MOST_FEWER = 10  # bits that a table may have less than another
FEWEST_BITS = 30
"""No table of several has fewer, unless there are very many."""
_LINES = 2**62  # of all tables together: half of what fits, since rounding moves ends
_ALONE_SECONDS = 10.0  # what is expected to take longer is shared among processes
_FIRST = 8  # tables whose time tells that of all
_MOST_PROVED = 200_000  # labels of all tables
_GRAPH_BYTES = 100_000  # but for what each table adds
_ENTRY_BYTES = 8
_FEWER_ENTRIES = (1, 4, 16)  # of each table, where together they are too many after all
_EVEN_SHARES = (0, 1e-4, 1e-2, 0.1, 0.5, 1)  # of a prior that no table can be made for
_TOLD = 5.0  # seconds between two words of progress


@dataclass(frozen=True)
class SolvedTables:
    """The integers of all tables, and what proves how much better they could be.

    Attributes:
        integers: of the file.
        bounds: [T + 1] of each table, if there is one.
        classes: whether the only table treats all classes alike (``Solved``).
        grid: of the lookup that several tables share.
    """

    integers: Integers
    bounds: Sequence[DualBound | RadiusBound | None]
    classes: bool = False
    grid: BucketGrid | None = None

    @classmethod
    def one(cls, domain: Domain, solved: Solved) -> SolvedTables:
        """All rows have this table."""
        return cls(Integers.of(domain, solved.randomizer), [solved.bound], solved.classes)


def solve_tables(
    spec: Spec, prior: Prior, word_bits: int | None = None, observer: Observer = QUIET
) -> SolvedTables:
    """The tables of a spec's mechanism for the priors of all of them; touches no label.

    Raises ValueError if there are none. Several tables also need a mechanism that makes windows,
    and must fit into one file.
    """
    if len(prior.tables) != prior.groups.tables:
        raise ValueError("expected one prior for each table of the groups")
    domain, epsilon, rows = spec.domain, prior.epsilon_label, prior.rows
    if not prior.groups.columns:
        problem = problem_of(spec, domain, prior.weights, epsilon, rows, word_bits, observer)
        return SolvedTables.one(domain, spec.named_mechanism.build(problem))
    check_groups(prior.groups)
    weights = [tuple(one.weights) for one in prior.tables]
    entries = entries_of_table(spec, len(weights), rows)
    solve = partial(_solve, spec, epsilon, rows)
    found, grid = _fitting(solve, prior.groups, weights, entries, observer)
    proved = is_proved(spec, len(weights))
    # dual values, one per label: files with several tables have no other proof
    bounds = [one.bound if proved and isinstance(one.bound, DualBound) else None for one in found]
    return SolvedTables(
        Integers(domain, prior.groups, tuple(map(_window, found))), bounds, grid=grid
    )


def problem_of(
    spec: Spec,
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    rows: int | None = None,
    word_bits: int | None = None,
    observer: Observer = QUIET,
    entries: int | None = None,
) -> Problem:
    """The problem that the mechanism of a spec solves, for a prior of ``rows`` rows, if known.

    ``entries`` is the table's room in the lookup, if other tables share it.
    """

    def has_room(randomizer: WindowRandomizer) -> bool:
        if entries is not None:
            return choose_grid(randomizer, entries) is not None
        return fits(spec, rows, randomizer)

    return Problem(
        domain=domain,
        weights=weights,
        epsilon=epsilon,
        loss=spec.loss,
        word_bits=word_bits,
        observer=observer,
        fits=has_room,
        entries=entries or bucket_grid.COMFORTABLE_ENTRIES,
    )


def require_room(spec: Spec, tables: int, rows: int | None) -> int:
    """The most bytes of a file with this number of tables.

    Raises InputError if a verifier might refuse the file, and says how many tables fit. This is
    known before ε is spent on a prior.
    """
    if _has_room(spec, tables, rows):
        return _bytes(spec, tables, rows, entries_of_table(spec, tables, rows))
    fit = tables
    while fit > 1 and not _has_room(spec, fit, rows):
        fit = fit * 99 // 100
    raise InputError(
        f"{spec.name}: {tables:,} tables of {spec.domain.size:,} labels might not fit into one "
        f"file of at most {steps.MAX_FILE_BYTES:,} bytes: about {fit:,} fit. Use fewer groups, "
        "coarser bands or fewer labels"
    )


def entries_of_table(spec: Spec, tables: int, rows: int | None) -> int:
    """How many buckets of the common lookup each of ``tables`` tables may use, by all limits."""
    left = (steps.MAX_FILE_BYTES - _bytes(spec, tables, rows, 0)) // (2 * _ENTRY_BYTES * tables)
    return min(bucket_grid.MAX_ENTRIES // (2 * tables), left, bucket_grid.COMFORTABLE_ENTRIES)


def _has_room(spec: Spec, tables: int, rows: int | None) -> bool:
    least = spec.named_mechanism.least_entries(spec.domain.size)
    return entries_of_table(spec, tables, rows) >= least


def _bytes(spec: Spec, tables: int, rows: int | None, entries: int) -> int:
    """At most: moves, base totals and word shifts, the lookup, segments, claims, and the map."""
    k = spec.domain.size
    # A segment takes a bucket, or several; and there are moves of each label along two lines.
    each = _ENTRY_BYTES * (2 * k + 2 + 2 * entries)
    many = 2**53 if rows is None else rows
    lists = len(spec.named_mechanism.proof(spec.loss, k)) if is_proved(spec, tables) else 0
    # Without fractions that are unusually long.
    claims = _CLAIMS + _weights(spec, many // tables + 1) + k * _FLOAT * lists
    return _GRAPH_BYTES + tables * (each + claims)


def is_proved(spec: Spec, tables: int) -> bool:
    """Whether the certificate has lower bounds on losses; for many tables they are too large."""
    return tables * spec.domain.size <= _MOST_PROVED


def _fitting(
    solve: Callable[..., Solved],
    groups: Groups,
    weights: Sequence[tuple[int, ...]],
    entries: int,
    observer: Observer,
) -> tuple[list[Solved], BucketGrid]:
    """The tables, with few enough entries for a common lookup, and that lookup.

    Raises ValueError if none fits.
    """
    for fewer in _FEWER_ENTRIES:
        found = build_tables(partial(solve, entries // fewer), weights, observer)
        lines = GroupedWindows(groups, tuple(map(_window, found))).lines
        grid = choose_grid(lines, single_entries=bucket_grid.SINGLE_GRID_OF_GROUPS)
        if grid is not None:
            return found, grid
    raise ValueError("the lookup tables would be too large; use fewer groups or labels")


def _solve(
    spec: Spec,
    epsilon: Fraction,
    rows: int | None,
    entries: int,
    weights: Sequence[int],
    word_bits: int,
) -> Solved:
    """One table; a function of this module, so that processes can share the work.

    After noise, a solver may fail for a prior on which ε was already spent. Then the prior is mixed
    with an even one: the table is as private, and nearly as good. No bound is claimed for it.
    """
    whole, k = sum(weights), len(weights)
    failed = Exception()
    for share in _EVEN_SHARES:
        mixed = [round((1 - share) * k * weight) + round(share * whole) for weight in weights]
        given = mixed if share else weights
        problem = problem_of(spec, spec.domain, given, epsilon, rows, word_bits, entries=entries)
        try:
            solved = spec.named_mechanism.build(problem)
        except (ValueError, ArithmeticError) as error:
            failed = error
        else:
            return Solved(solved.randomizer) if share else solved
    raise ValueError(str(failed)) from failed


Solve = Callable[[Sequence[int], int], Solved]
"""From weights [k] and a word size to a window randomizer."""


def build_tables(
    solve: Solve, weights: Sequence[tuple[int, ...]], observer: Observer = QUIET
) -> list[Solved]:
    """[T] window randomizers with as many bits as fit one lookup; groups may share a prior.

    Raises ValueError for a randomizer of another form, or of too many segments.
    """
    distinct = list(dict.fromkeys(weights))
    tried = dict(
        zip(distinct, _each(solve, [(w, _TRIED_BITS) for w in distinct], observer, 0), strict=True)
    )
    windows = [_window(tried[one]) for one in weights]
    narrow = {id(window): _narrowest(window) for window in windows}
    widths = [narrow[id(window)] for window in windows]
    fewer = [min(width - min(widths), _MOST_FEWER) for width in widths]
    lines = sum(
        (window.base_total + window.extra_total) >> less
        for window, less in zip(windows, fewer, strict=True)
    )
    segments = sum(len(window.base) + len(window.extra) for window in windows)
    # Buckets may be as wide as the segments allow only if numbers of segments fit above them.
    room = min((_LINES // lines).bit_length() - 1, 62 - (segments + 1).bit_length() - min(widths))
    bits = min(_TRIED_BITS + room, MAX_WORD_BITS)
    wanted = [(one, bits - less) for one, less in zip(weights, fewer, strict=True)]
    tasks = list(dict.fromkeys(wanted))
    found = dict(zip(tasks, _each(solve, tasks, observer, len(tasks)), strict=True))
    return [found[task] for task in wanted]


Task = tuple[tuple[int, ...], int]
"""Weights [k] and a word size."""


def _each(solve: Solve, tasks: Sequence[Task], observer: Observer, before: int) -> Iterator[Solved]:
    """The solutions in order: by one process, or by as many as there are processors.

    Each table is solved twice; ``before`` is how many solves were done before these.
    """
    began = told = time.monotonic()
    total = 2 * len(tasks)

    def tell(timed: int, earlier: int) -> None:
        nonlocal told
        if time.monotonic() - told > _TOLD:
            told, done = time.monotonic(), earlier + timed
            left = time_left(began, timed, total - done)
            observer.step(f"{done:,} of {total:,} solves of tables are done, {left}")

    for done, task in enumerate(tasks[:_FIRST], 1):
        yield solve(*task)
        tell(done, before)
    rest, work = tasks[_FIRST:], partial(_of, solve)
    is_long = (time.monotonic() - began) * len(rest) / _FIRST >= _ALONE_SECONDS
    began = time.monotonic()  # several processes have another pace
    for done, solved in enumerate((_shared if is_long else map)(work, rest), 1):
        yield solved
        tell(done, before + _FIRST)


def _shared(work: Callable[[Task], Solved], tasks: Sequence[Task]) -> Iterator[Solved]:
    """The work in order, by other processes as long as they can be had."""
    import multiprocessing  # noqa: PLC0415  # rarely needed: specs with many groups
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # noqa: PLC0415

    from labeldp_compile.subprocess_signals import no_main, uninterrupted  # noqa: PLC0415

    done = 0
    if not multiprocessing.current_process().daemon:  # which may have no children
        try:
            # Forked children would share locks of threads that they do not have.
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
                others = set(multiprocessing.active_children())
                with no_main(), uninterrupted():
                    each = pool.map(work, tasks, chunksize=4)
                ours = set(multiprocessing.active_children()) - others
                try:
                    for solved in each:
                        yield solved
                        done += 1
                except BaseException:
                    # ^C is not for them, and the pool would wait for all that they have begun.
                    for process in ours:
                        process.kill()
                    raise
        except (BrokenExecutor, OSError):
            pass  # a child was killed, or none could be started
    yield from map(work, tasks[done:])


def _of(solve: Solve, task: Task) -> Solved:
    return solve(*task)


def _narrowest(window: WindowRandomizer) -> int:
    """log₂ of the width of the buckets that the window would have in a file of its own."""
    grid = choose_grid(window)
    if grid is None:
        raise ValueError("the table of a group would be too large; use fewer labels")
    return min(grid.base_shift, grid.extra_shift, window.word_bits)


def _window(solved: Solved) -> WindowRandomizer:
    if not isinstance(solved.randomizer, WindowRandomizer):
        raise ValueError("tables by group are windows: choose another mechanism")
    return solved.randomizer

"""From a prior for each public group to one artifact with a table for each.

The tables share one lookup, whose buckets are as narrow as the narrowest segments of all of them
demand. So a table whose segments are wider gets fewer random bits: its lines are then shorter, and
take as few buckets as they would alone. What is left of 63 bits for all lines decides how many bits
the others have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

from labeldp_verify import steps
from labeldp_verify.artifact import BucketGrid, bucket_grid, choose_grid, write_model
from labeldp_verify.forms import GroupedWindows, Groups, WindowRandomizer
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.forms.window import MAX_WORD_BITS

from labeldp_compile import sizes
from labeldp_compile.assembly import Artifact, problem_of, provenance_of, require_verified
from labeldp_compile.certificate import TableProvenance, build_grouped_certificate
from labeldp_compile.children import no_main, uninterrupted
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.problem import DualBound, Solved
from labeldp_compile.prior.group_priors import GroupedPrior
from labeldp_compile.spec import Spec

_TRIED_BITS = 44  # at which the widths of the segments are looked at
_MOST_FEWER = 10  # bits that a table may have less than another
_LINES = 2**62  # of all tables together: half of what fits, since rounding moves ends
_ALONE_SECONDS = 10.0  # what is expected to take longer is shared among processes
_FIRST = 8  # tables whose time tells that of all
_MOST_PROVED = 200_000  # labels of all tables
_GRAPH_BYTES = 100_000  # but for what each table adds
_ENTRY_BYTES = 8
_FEWER_ENTRIES = (1, 4, 16)  # of each table, where together they are too many after all
_EVEN_SHARES = (0, 1e-4, 1e-2, 0.1, 0.5, 1)  # of a prior that no table can be made for
_TOLD = 5.0  # seconds between two words of progress


def assemble_groups(
    spec: Spec,
    priors: GroupedPrior,
    spec_digest: str,
    *,
    insecure: str | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Artifact:
    """The artifact of a spec's mechanism for priors by group; touches no label.

    The last prior is the certificate's own; what was spent on all of them stands there. Raises
    InputError for a mechanism that makes no windows, and where tables do not fit into one file.
    """
    pooled = priors.pooled
    weights = [tuple(one.weights) for one in priors.tables]
    try:
        check_groups(priors.groups)
        if len(priors.tables) != priors.groups.tables:
            raise ValueError("the priors are not one for each table of the groups")
        entries = entries_of_table(spec, len(weights), pooled.rows)
        solve = partial(_solve, spec, pooled.epsilon_label, pooled.rows)
        found, randomizer, grid = _fitting(solve, priors.groups, weights, entries, progress)
        proved = is_proved(spec, len(weights))
        tables = [
            TableProvenance(one.size, one.statement, _listed(solved) if proved else None)
            for one, solved in zip(priors.tables, found, strict=True)
        ]
        certificate = build_grouped_certificate(
            spec.domain,
            randomizer,
            spec.loss,
            provenance_of(spec, pooled, spec_digest, insecure, None),
            tables,
        )
        model = write_model(spec.domain, randomizer, certificate.to_json(), grid)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    require_verified(spec, model, insecure)
    return Artifact(spec.name, model, certificate, randomizer, goal=spec.goal)


def _listed(solved: Solved) -> DualBound | None:
    """Dual values, one a label: format 1.1 has no other proof."""
    return solved.bound if isinstance(solved.bound, DualBound) else None


def require_room(spec: Spec, tables: int, rows: int) -> int:
    """The most bytes of a file with so many tables; InputError if a verifier might not read it.

    Known before a prior is paid for: it says how many groups fit.
    """
    if _has_room(spec, tables, rows):
        return _bytes(spec, tables, rows, entries_of_table(spec, tables, rows))
    fit = tables
    while fit > 1 and not _has_room(spec, fit, rows):
        fit = fit * 99 // 100
    raise InputError(
        f"{spec.name}: {tables:,} tables of {spec.domain.size:,} labels might not fit into one "
        f"file, of at most {steps.MAX_FILE_BYTES:,} bytes: about {fit:,} do. List fewer groups or "
        "coarser bands, or take fewer labels"
    )


def entries_of_table(spec: Spec, tables: int, rows: int | None) -> int:
    """How many buckets of the common lookup each of so many tables may take, by all limits."""
    left = (steps.MAX_FILE_BYTES - _bytes(spec, tables, rows, 0)) // (2 * _ENTRY_BYTES * tables)
    return min(bucket_grid.MAX_ENTRIES // (2 * tables), left, bucket_grid.COMFORTABLE_ENTRIES)


def _has_room(spec: Spec, tables: int, rows: int) -> bool:
    least = spec.named_mechanism.least_entries(spec.domain.size)
    return entries_of_table(spec, tables, rows) >= least


def _bytes(spec: Spec, tables: int, rows: int | None, entries: int) -> int:
    """At most: moves, base totals and word shifts, the lookup, segments, claims, and the map."""
    k = spec.domain.size
    # A segment takes a bucket, or several; and there are moves of each label along two lines.
    each = _ENTRY_BYTES * (2 * k + 2 + 2 * entries)
    many = 2**53 if rows is None else rows
    claims = sizes.claims_bytes(spec, many // tables + 1, proved=is_proved(spec, tables))
    return _GRAPH_BYTES + tables * (each + claims)


def is_proved(spec: Spec, tables: int) -> bool:
    """Whether lower bounds on the losses are in the certificate: of very many they outweigh it."""
    return tables * spec.domain.size <= _MOST_PROVED


def _fitting(
    solve: Callable[..., Solved],
    groups: Groups,
    weights: Sequence[tuple[int, ...]],
    entries: int,
    progress: Callable[[str], None],
) -> tuple[list[Solved], GroupedWindows, BucketGrid]:
    """The tables, with so few entries each that their common lookup can be written, and that.

    Raises ValueError where there is none.
    """
    for fewer in _FEWER_ENTRIES:
        found = build_tables(partial(solve, entries // fewer), weights, progress)
        randomizer = GroupedWindows(groups, tuple(_window(one) for one in found))
        grid = choose_grid(randomizer.lines, single_entries=bucket_grid.SINGLE_GRID_OF_GROUPS)
        if grid is not None:
            return found, randomizer, grid
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

    Noise may leave a prior on which a solver fails, when it is paid for already. Then the table is
    that of a prior which is mixed with an even one: as private, and as good but for the mixture. No
    bound is claimed of it.
    """
    whole, k = sum(weights), len(weights)
    for share in _EVEN_SHARES:
        mixed = [round((1 - share) * k * weight) + round(share * whole) for weight in weights]
        given = weights if not share else mixed
        problem = problem_of(spec, spec.domain, given, epsilon, rows, word_bits, entries=entries)
        try:
            solved = spec.named_mechanism.build(problem)
        except (ValueError, ArithmeticError) as error:
            if share == _EVEN_SHARES[-1]:
                raise ValueError(str(error)) from error
            continue
        return solved if not share else Solved(solved.randomizer)
    raise AssertionError


Solve = Callable[[Sequence[int], int], Solved]
"""From weights [k] and a word size to a window randomizer."""


def build_tables(
    solve: Solve,
    weights: Sequence[tuple[int, ...]],
    progress: Callable[[str], None] = lambda line: None,
) -> list[Solved]:
    """[T] window randomizers with as many bits as fit one lookup; groups may share a prior.

    Raises ValueError for a randomizer of another form, or of too many segments.
    """
    distinct = list(dict.fromkeys(weights))
    tried = dict(
        zip(distinct, _each(solve, [(w, _TRIED_BITS) for w in distinct], progress), strict=True)
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
    found = dict(zip(tasks, _each(solve, tasks, progress), strict=True))
    return [found[task] for task in wanted]


Task = tuple[tuple[int, ...], int]
"""Weights [k] and a word size."""


def _each(
    solve: Solve,
    tasks: Sequence[Task],
    progress: Callable[[str], None],
) -> Iterator[Solved]:
    """The solutions in order: by one process, or by as many as there are processors."""
    began = time.monotonic()
    for task in tasks[:_FIRST]:
        yield solve(*task)
    rest = tasks[_FIRST:]
    taken = time.monotonic() - began
    if taken * len(rest) / _FIRST < _ALONE_SECONDS:
        yield from (solve(*task) for task in rest)
        return
    told = time.monotonic()
    for done, solved in enumerate(_shared(partial(_of, solve), rest), _FIRST + 1):
        yield solved
        if time.monotonic() - told > _TOLD:
            told = time.monotonic()
            progress(f"{done:,} of {len(tasks):,} tables are solved")


def _shared(work: Callable[[Task], Solved], tasks: Sequence[Task]) -> Iterator[Solved]:
    """The work in order, by other processes as long as they can be had."""
    import multiprocessing  # noqa: PLC0415  # few specs have groups, and few of these so many
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # noqa: PLC0415

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

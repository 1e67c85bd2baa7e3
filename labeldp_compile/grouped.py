"""From a prior for each public group to one artifact with a table for each.

The tables share one lookup, whose buckets are as narrow as the narrowest segments of all of them
demand. So a table whose segments are wider gets fewer random bits: its lines are then shorter, and
take as few buckets as they would alone. What is left of 63 bits for all lines decides how many bits
the others have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labeldp_verify import OWN_FILES, VerificationError, check_bytes
from labeldp_verify.artifact import choose_grid, write_model
from labeldp_verify.certificate import Certificate
from labeldp_verify.forms import GroupedWindows, Groups, WindowRandomizer
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.forms.window import MAX_WORD_BITS

from labeldp_compile.certificate import TableProvenance, build_grouped_certificate
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.problem import Solved
from labeldp_compile.pipeline import problem_of, provenance_of
from labeldp_compile.prior import Prior
from labeldp_compile.spec import Spec

_TRIED_BITS = 44  # at which the widths of the segments are looked at
_MOST_FEWER = 10  # bits that a table may have less than another
_LINES = 2**62  # of all tables together: half of what fits, since rounding moves ends

Build = Callable[[int, int], Solved]
"""From a table's number and a word size to its window randomizer."""


@dataclass(frozen=True)
class GroupPrior:
    """The prior of one group's labels, and the public number of its rows."""

    size: int
    prior: Prior


@dataclass(frozen=True)
class GroupedArtifact:
    """An artifact with tables by group: the file's bytes, its certificate, the integers inside."""

    name: str
    model: bytes
    certificate: Certificate
    randomizer: GroupedWindows


def assemble_groups(
    spec: Spec,
    groups: Groups,
    priors: Sequence[GroupPrior],
    spec_digest: str,
    *,
    insecure: str | None = None,
) -> GroupedArtifact:
    """The artifact of a spec's mechanism for each of the priors [T + 1]; touches no label.

    The last prior is that of all rows without a table of their own, and the certificate's own; what
    was spent on priors stands there. Raises InputError for a mechanism
    that makes no windows, and where tables do not fit into one file.
    """
    pooled = priors[-1].prior
    domain = spec.domain
    solved: dict[tuple[tuple[int, ...], int], Solved] = {}

    def build(table: int, word_bits: int) -> Solved:
        prior = priors[table].prior
        key = (tuple(prior.weights), word_bits)
        if key not in solved:  # groups may share a prior
            problem = problem_of(
                spec, domain, prior.weights, pooled.epsilon_label, prior.rows, word_bits
            )
            solved[key] = spec.named_mechanism.build(problem)
        return solved[key]

    try:
        check_groups(groups)
        if len(priors) != groups.tables:
            raise ValueError(f"the groups have {groups.tables} tables, and {len(priors)} priors")
        found = build_tables(build, groups.tables)
        randomizer = GroupedWindows(groups, tuple(_window(one) for one in found))
        tables = [
            TableProvenance(group.size, group.prior.statement, one.bound)
            for group, one in zip(priors, found, strict=True)
        ]
        certificate = build_grouped_certificate(
            domain,
            randomizer,
            spec.loss,
            provenance_of(spec, pooled, spec_digest, insecure, None),
            tables,
        )
        model = write_model(domain, randomizer, certificate.to_json())
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    if insecure is None:
        try:
            check_bytes(model, budget=OWN_FILES).require()
        except VerificationError as error:
            raise InputError(
                f"{spec.name}: these groups have no file that verifies ({error})"
            ) from error
    return GroupedArtifact(spec.name, model, certificate, randomizer)


def build_tables(build: Build, tables: int) -> list[Solved]:
    """[tables] window randomizers with as many bits as fit one lookup.

    Raises ValueError for a randomizer of another form, or of too many segments.
    """
    windows = [_window(build(table, _TRIED_BITS)) for table in range(tables)]
    widths = [_narrowest(window) for window in windows]
    fewer = [min(width - min(widths), _MOST_FEWER) for width in widths]
    lines = sum(
        (window.base_total + window.extra_total) >> less
        for window, less in zip(windows, fewer, strict=True)
    )
    segments = sum(len(window.base) + len(window.extra) for window in windows)
    # Buckets may be as wide as the segments allow only if numbers of segments fit above them.
    room = min((_LINES // lines).bit_length() - 1, 62 - (segments + 1).bit_length() - min(widths))
    bits = min(_TRIED_BITS + room, MAX_WORD_BITS)
    return [build(table, bits - less) for table, less in enumerate(fewer)]


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

"""Warnings about tables by group: each one once, with the groups that it is about."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from labeldp_verify.claims import Certificate, rational
from labeldp_verify.forms import Domain, Groups, Integers, WindowRandomizer, are_numbers
from labeldp_verify.printable import clipped, one_line
from labeldp_verify.reading.shortcomings import (
    LIKE_A_CONSTANT,
    NEVER_AN_OUTPUT,
    NOT_ESTIMABLE,
    ODD_GROUPS,
    ONE_OUTPUT,
    TOLD_APART_FROM_NONE,
    UNUSED_EPSILON,
    Shortcoming,
    find_shortcomings,
    row_keys,
)
from labeldp_verify.reading.usefulness import (
    MAX_ENTRIES,
    MAX_LABELS,
    distances,
    inverse_of,
    is_unbiased,
)

_NAMED, _COLUMNS = 10, 40  # groups in one line, and characters of their names
_ROWS = 2  # of a group or a value, at most, on average: fewer than a group has
_TEXTS = 3  # lines of one kind that differ in figures alone
_WORK = 2_000_000_000  # multiplications for the weights of all tables
_TABLE_WORK = 100_000  # of a table, however small: what Python does around them
# What lines of a kind have in common, the worst first.
_ALIKE = {
    ONE_OUTPUT: "private labels carry no information",
    NEVER_AN_OUTPUT: "categories never come out",
    LIKE_A_CONSTANT: "single private labels are hardly closer to the true ones than a constant",
    UNUSED_EPSILON: "the integers give a much smaller ε than declared",
    TOLD_APART_FROM_NONE: "no output distinguishes some labels",
    NOT_ESTIMABLE: "no useful weights make private labels right on average",
}


def group_shortcomings(integers: Integers, certificate: Certificate) -> list[Shortcoming]:
    """What is odd of the groups, and what keeps labels of some from being useful, the worst first.

    The certificate was verified.
    """
    domain, groups, stated = integers.label, integers.groups, certificate.tables
    allowed = rational(certificate.exact.epsilon_label)
    odd = odd_groups(groups, [claims.size for claims in stated])
    tables_of: dict[Shortcoming, list[int]] = {}
    weights = _Weights(domain)
    for i, (claims, table) in enumerate(zip(stated, integers.tables, strict=True)):
        assert isinstance(table, WindowRandomizer)
        use = claims.utility
        proved, off = rational(claims.exact.epsilon_label_bound), None
        numbers = use.loss != "zero_one" and are_numbers(domain, table)
        if numbers and is_unbiased(domain, use.largest_bias):
            estimable: bool | None = True
        else:
            estimable = weights.exist(table)
            off = distances(domain, table, claims.prior.weights) if numbers else None
        for found in find_shortcomings(domain, table, estimable, proved, allowed, off):
            tables_of.setdefault(found, []).append(i)
    return [Shortcoming(ODD_GROUPS, text) for text in odd] + [
        line
        for kind, alike in _ALIKE.items()
        for line in _lines(
            {found: of for found, of in tables_of.items() if found.kind == kind}, groups, alike
        )
    ]


def odd_groups(groups: Groups, sizes: Sequence[int]) -> list[str]:
    """Sizes that are odd for groups, in plain words, each one printable line.

    Only public things are looked at: how many values are listed, how many groups there are, and
    how many rows. Labels are not, and no figure is named: if a group were a label, its size would
    be a count of labels. A warning proves nothing, and neither does its absence.

    Args:
        groups: the public map from columns to T + 1 tables.
        sizes: [T + 1] the public number of rows of each.
    """
    rows, found = sum(sizes), []
    for column in groups.columns:
        if column.values is not None and _ROWS * len(column.values) >= rows:
            name = clipped(one_line(repr(column.name)), _COLUMNS)
            found.append(
                f"about as many values of {name} are listed as there are rows, so that single rows "
                "are assigned to groups: if labels decided that, the artifact tells them"
            )
    filled = sum(size > 0 for size in sizes[: groups.own_tables])
    if _ROWS * filled >= rows:
        found.append(
            "there are about as many groups as rows: if labels decided the groups, the artifact "
            "tells them"
        )
    return found


def _lines(
    found: dict[Shortcoming, list[int]], groups: Groups, alike: str
) -> Iterable[Shortcoming]:
    """Those of one kind, each with its groups; where they are many, first of how many groups."""
    if len(found) > _TEXTS:
        concerned = sorted({table for tables in found.values() for table in tables})
        first = next(iter(found))
        yield replace(first, text=f"{_whose(concerned, groups)}{alike}")
        found = dict(list(found.items())[:_TEXTS])
    for one, tables in found.items():
        yield replace(one, text=f"{_whose(tables, groups)}{one.text}")


def _whose(tables: Sequence[int], groups: Groups) -> str:
    """The groups at the beginning of a line; nothing where all of them have one table."""
    if groups.tables == 1:
        return ""
    if len(tables) == groups.tables:
        return f"in all {groups.tables:,} groups: "
    # No counts: a spec is refused with these words, and its groups may not be what it declares.
    shown = (one_line(groups.name(i, counted=False)) for i in tables[:_NAMED])
    names = ", ".join(clipped(name, _COLUMNS) for name in shown)
    if len(tables) > _NAMED:
        return f"{len(tables):,} of {groups.tables:,} groups ({names}, …): "
    return f"group{'s' if len(tables) > 1 else ''} {names}: "


class _Weights:
    """Whether weights exist that make a table's labels right on average, as for one table.

    This needs the inverse of a table. It is not computed where the answer is known without it, nor
    twice for the same table, nor once ``_WORK`` is used up; then the answer is None.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain, self._left = domain, _WORK
        self._known: dict[WindowRandomizer, bool] = {}

    def exist(self, window: WindowRandomizer) -> bool | None:
        """None if that is too much work."""
        k = self._domain.size
        if k > MAX_LABELS or k * window.outputs > MAX_ENTRIES:
            return None
        if len(set(row_keys(window))) < k or window.outputs < k:
            return False
        integers = replace(window, values=())  # all that the probabilities come from
        if integers not in self._known:
            self._left -= _TABLE_WORK + k * k * (k + window.outputs)
            if self._left < 0:
                return None
            known = inverse_of(self._domain, window)
            self._known[integers] = known is not None and known[1] is not None
        return self._known[integers]

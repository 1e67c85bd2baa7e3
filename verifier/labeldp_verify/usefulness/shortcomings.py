"""Warnings about private labels that say little or nothing, although their ε is proved.

A proof of privacy says nothing about usefulness: a constant is private, too. Every page that shows
a verdict shows these, and never calls such a file the best.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from labeldp_verify.analysis import LOSSES, CostMatrix, Loss, analyse, expected_loss, strays
from labeldp_verify.claims import Certificate, rational
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    Groups,
    Integers,
    Randomizer,
    TableRandomizer,
    WindowRandomizer,
    are_numbers,
    sets_of,
)
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.printable import clipped, one_line
from labeldp_verify.usefulness.estimates import (
    MAX_ENTRIES,
    MAX_LABELS,
    distances,
    inverse_of,
    is_unbiased,
)

ONE_OUTPUT = "one_output"
NEVER_AN_OUTPUT = "never_an_output"
UNUSED_EPSILON = "unused_epsilon"
LIKE_A_CONSTANT = "like_a_constant"
TOLD_APART_FROM_NONE = "told_apart_from_none"
NOT_ESTIMABLE = "not_estimable"
ODD_GROUPS = "odd_groups"  # which may be private, and no matter of use
_MUCH = Fraction(1, 2)  # of a declared ε that at least is used
_HARDLY = 0.95  # of what a constant is off by, or loses
_LABELS_TRIED = 10_000  # as constants, and less than a second
_NAMED, _COLUMNS = 3, 24


@dataclass(frozen=True)
class Shortcoming:
    """One thing that keeps private labels from being useful.

    Attributes:
        kind: ``one_output``, ``never_an_output``, ``unused_epsilon``, ``like_a_constant``,
            ``told_apart_from_none`` or ``not_estimable``; or ``odd_groups``, of public groups
            that may be none (``odd_groups``).
        text: in plain words, printable.
        for_training_only: whether someone who reads single labels need not mind.
        for_labels_only: whether only someone who does need mind.
    """

    kind: str
    text: str
    for_training_only: bool = False
    for_labels_only: bool = False


def relevant(found: Iterable[Shortcoming], goal: str | None) -> list[Shortcoming]:
    """Those that matter for a goal, ``training`` or ``labels``; all, where none is known."""
    spared = {"labels": "for_training_only", "training": "for_labels_only"}.get(goal or "")
    return [one for one in found if spared is None or not getattr(one, spared)]


def says_nothing(randomizer: Randomizer, proved: Fraction) -> Shortcoming | None:
    """Whether all labels are alike after it; ``proved`` is the ε of a label."""
    if randomizer.outputs > 1 and proved > 0:
        return None
    what = "every label becomes the same output"
    if randomizer.outputs > 1:
        what = "all labels have the same output probabilities"
    return Shortcoming(ONE_OUTPUT, f"{what}, so private labels carry no information")


def find_shortcomings(
    domain: Domain,
    randomizer: Randomizer,
    estimable: bool | None,
    epsilons: tuple[Fraction, Fraction],
    under: tuple[Sequence[int], Loss],
    distances: tuple[float, float] | None,
) -> list[Shortcoming]:
    """The shortcomings of a verified randomizer, the worst first.

    Args:
        estimable: whether weights exist that make its labels right on average; None if unknown.
        epsilons: of a label, the proved one and the declared one.
        under: weights [k] in proportion to the prior, and the loss.
        distances: from the true label, of a private one and of the best constant (root mean
            squares under the prior), where private labels are off on average.
    """
    proved, declared = epsilons
    nothing = says_nothing(randomizer, proved)
    if nothing is not None:
        return [nothing]
    lines = []
    labels = not isinstance(randomizer, AdditiveRandomizer) and sets_of(randomizer) is None
    if labels and isinstance(domain, CategoricalDomain):
        assert not isinstance(randomizer, AdditiveRandomizer)
        outputs = set(randomizer.values)
        missing = [value for value in domain.values if value not in outputs]
        if missing:
            named = (one_line(domain.name(value)) for value in missing[:_NAMED])
            names = ", ".join(clipped(name, _COLUMNS) for name in named)
            more = ", …" if len(missing) > _NAMED else ""
            count = f"{len(missing):,} of {domain.size:,} categories never come out"
            lines.append(Shortcoming(NEVER_AN_OUTPUT, f"{count}: {names}{more}"))
    if proved < _MUCH * declared:
        lines.append(
            Shortcoming(
                UNUSED_EPSILON,
                f"the integers give ε ≤ {float(proved):.4g} where {float(declared):.4g} is "
                "declared, so these labels are noisier than necessary",
            )
        )
    beside = (
        None if distances is None else _beside_a_constant(domain, randomizer, *under, distances)
    )
    if beside is not None and beside[1] and beside[0] >= _HARDLY * beside[1]:
        off, constant = (f"{one:.3g}" for one in beside)
        text = f"a private label is off by {off}, and a constant by {constant}"
        if under[1] != "squared":
            text = f"private labels have a loss of {off} ({under[1]}), and a constant {constant}"
        text = f"under the stated prior, {text}. Read one by one, private labels say little more "
        text += "than the constant"
        lines.append(Shortcoming(LIKE_A_CONSTANT, text, for_labels_only=True))
    groups = len(set(row_keys(randomizer)))
    if groups < domain.size:
        text = f"{domain.size:,} labels form {groups:,} groups"
        text += "; no output distinguishes labels of one group"
        lines.append(Shortcoming(TOLD_APART_FROM_NONE, text, True))
    if estimable is False:
        what = "mean" if are_numbers(domain, randomizer) else "shares"
        lines.append(
            Shortcoming(
                NOT_ESTIMABLE,
                f"no useful weights make private labels right on average. The {what} of the true "
                "labels cannot be estimated, and models trained on them stay biased",
                True,
            )
        )
    return lines


def _beside_a_constant(
    domain: Domain,
    randomizer: Randomizer,
    weights: Sequence[int],
    loss: Loss,
    distances: tuple[float, float],
) -> tuple[float, float] | None:
    """What a private label and the best constant lose on average, or ``distances`` if squared.

    None where it is too much work. A convex loss of constants falls, and then rises.
    """
    if loss == "squared":
        return distances
    if isinstance(loss, CostMatrix) or domain.size > _LABELS_TRIED:
        return None
    labels = domain.labels()
    assert isinstance(labels, ExactNumbers)
    of_private = expected_loss(analyse(randomizer), labels, weights, loss, strays(domain))[0]

    def of_constant(at: int) -> Fraction | float:
        only = TableRandomizer(0, ((1,),) * domain.size, (labels.floats()[at],))
        try:
            return expected_loss(analyse(only), labels, weights, loss)[0]
        except ValueError:  # infinite
            return math.inf

    low, high = 0, domain.size - 1
    while low < high:
        middle = (low + high) // 2
        if of_constant(middle) > of_constant(middle + 1):
            low = middle + 1
        else:
            high = middle
    return float(of_private), float(of_constant(low))


def row_keys(randomizer: Randomizer) -> Sequence[Hashable]:
    """[k] of each label; labels with equal rows of the table have equal keys.

    With one window per label, equal offsets are equal rows; different offsets hardly ever.
    """
    if isinstance(randomizer, AdditiveRandomizer):
        return range(randomizer.labels)
    if isinstance(randomizer, TableRandomizer):
        return randomizer.counts
    return randomizer.offsets if randomizer.window else [0] * len(randomizer.offsets)


# ---- Warnings about tables by group: each one once, with the groups that it is about.


_GROUPS_NAMED, _GROUP_COLUMNS = 10, 40  # groups in one line, and characters of their names
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
    """Oddities of groups, and shortcomings of the labels of some, the worst first.

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
        epsilons, off = (rational(claims.exact.epsilon_label_bound), allowed), None
        under = claims.prior.weights, use.loss
        numbers = LOSSES[use.loss].needs_numbers and are_numbers(domain, table)
        if numbers and is_unbiased(domain, use.largest_bias):
            estimable: bool | None = True
        else:
            estimable = weights.exist(table)
            off = distances(domain, table, claims.prior.weights) if numbers else None
        for found in find_shortcomings(domain, table, estimable, epsilons, under, off):
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
            name = clipped(one_line(repr(column.name)), _GROUP_COLUMNS)
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
    shown = (one_line(groups.name(i, counted=False)) for i in tables[:_GROUPS_NAMED])
    names = ", ".join(clipped(name, _GROUP_COLUMNS) for name in shown)
    if len(tables) > _GROUPS_NAMED:
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

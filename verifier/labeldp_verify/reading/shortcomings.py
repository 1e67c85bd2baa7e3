"""Warnings about private labels that say little or nothing, although their ε is proved.

A proof of privacy says nothing about usefulness: a constant is private, too. Every page that shows
a verdict shows these, and never calls such a file the best.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    Randomizer,
    TableRandomizer,
    are_numbers,
    sets_of,
)
from labeldp_verify.printable import clipped, one_line

ONE_OUTPUT = "one_output"
NEVER_AN_OUTPUT = "never_an_output"
UNUSED_EPSILON = "unused_epsilon"
LIKE_A_CONSTANT = "like_a_constant"
TOLD_APART_FROM_NONE = "told_apart_from_none"
NOT_ESTIMABLE = "not_estimable"
ODD_GROUPS = "odd_groups"  # which may be private, and no matter of use
_MUCH = Fraction(1, 2)  # of a declared ε that at least is used
_HARDLY = 0.95  # of what a constant is off by
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
    proved: Fraction,
    declared: Fraction,
    distances: tuple[float, float] | None = None,
) -> list[Shortcoming]:
    """What is wrong with a verified randomizer, the worst first.

    Args:
        estimable: whether weights exist that make its labels right on average; None if unknown.
        proved, declared: ε of a label.
        distances: from the true label, of a private one and of the best constant (root mean
            squares under the prior), where private labels are off on average.
    """
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
    if distances is not None and distances[1] and distances[0] >= _HARDLY * distances[1]:
        off, constant = (f"{distance:.3g}" for distance in distances)
        text = (
            f"under the stated prior, a private label is off by {off}, and a constant by {constant}"
        )
        text = f"{text}. Read one by one, private labels say little more than the constant"
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


def row_keys(randomizer: Randomizer) -> Sequence[Hashable]:
    """[k] of each label; labels with equal rows of the table have equal keys.

    With one window per label, equal offsets are equal rows; different offsets hardly ever.
    """
    if isinstance(randomizer, AdditiveRandomizer):
        return range(randomizer.labels)
    if isinstance(randomizer, TableRandomizer):
        return randomizer.counts
    return randomizer.offsets if randomizer.window else [0] * len(randomizer.offsets)

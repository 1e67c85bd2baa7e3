"""The content of a verified file, and the uses that it is good for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from labeldp_verify.analysis import analyse, equally_likely, row, value
from labeldp_verify.analysis.grid_labels import bias_in_range, strays
from labeldp_verify.analysis.losses import LOSSES, Loss
from labeldp_verify.claims import Certificate, PrivatePriorClaims, rational
from labeldp_verify.forms import Domain, Integers, Output, Randomizer, are_numbers, sets_of
from labeldp_verify.forms.exact_numbers import least_log_bound
from labeldp_verify.usefulness.estimates import usefulness
from labeldp_verify.usefulness.figures import Usefulness
from labeldp_verify.usefulness.shortcomings import (
    Shortcoming,
    find_shortcomings,
    group_shortcomings,
)


def assess(
    domain: Domain,
    randomizer: Randomizer,
    weights: Sequence[int],
    declared: Fraction,
    loss: Loss,
) -> tuple[Usefulness, list[Shortcoming]]:
    """The uses and shortcomings of a randomizer, before it has a certificate.

    ``weights`` [k] are in proportion to the prior, ``declared`` is the ε of a label.
    """
    analysis, bias = analyse(randomizer), None
    ratio = analysis.worst_ratio()
    if are_numbers(domain, randomizer):
        bias = float(analysis.biases(domain.labels(), strays(domain)).largest())
    classes = not LOSSES[loss].needs_numbers
    figures = usefulness(domain, randomizer, weights, ratio, bias, classes=classes)
    epsilons = least_log_bound(ratio), declared
    return figures, find_shortcomings(
        domain, randomizer, figures.estimable, epsilons, (weights, loss), figures.distances
    )


def randomizer_bias(domain: Domain, randomizer: Randomizer) -> float:
    """Upper bound of |E[output | label] − label| in the range, before there is a certificate."""
    analysis: Any = analyse(randomizer)
    largest = analysis.biases(domain.labels(), strays(domain)).largest()
    return float(bias_in_range(domain, largest, Fraction(analysis.output_rounding())))


def largest_bias(domain: Domain, certificate: Certificate) -> float | None:
    """The largest bias of a verified file for all labels in the range; None if there are none."""
    stated = certificate.exact.largest_bias
    if stated is None:
        return None
    rounding = Fraction(certificate.utility.output_rounding)
    return float(bias_in_range(domain, rational(stated), rounding))


@dataclass(frozen=True)
class Table:
    """One table of an artifact, as if the file had no other.

    Its usefulness is computed on first use.
    """

    domain: Domain
    randomizer: Randomizer
    certificate: Certificate
    sha256: str = ""

    def counts(self, label: int) -> list[int]:
        """[m] exact counts of each output for the label of this index; they sum to ``words``."""
        return row(self.randomizer, label)

    @property
    def words(self) -> int:
        """The denominator of every probability."""
        return equally_likely(self.randomizer)

    def output(self, index: int) -> Output:
        """The output of this index, 0 … m − 1."""
        return value(self.randomizer, index)

    @cached_property
    def usefulness(self) -> Usefulness:
        """The figures, under the prior in the certificate."""
        claims = self.certificate
        return usefulness(
            self.domain,
            self.randomizer,
            claims.prior.weights,
            rational(claims.exact.realised_ratio),
            claims.utility.largest_bias,
            classes=not LOSSES[claims.utility.loss].needs_numbers,
        )

    @cached_property
    def shortcomings(self) -> list[Shortcoming]:
        """Reasons why its labels are not useful, the worst first."""
        exact = self.certificate.exact
        epsilons = rational(exact.epsilon_label_bound), rational(exact.epsilon_label)
        use = self.usefulness
        under = self.certificate.prior.weights, self.certificate.utility.loss
        return find_shortcomings(
            self.domain, self.randomizer, use.estimable, epsilons, under, use.distances
        )

    def use_in_words(self) -> list[str]:
        """The figures as lines for people, each with its condition."""
        return self.usefulness.in_words(self.rows, self.certificate.prior.kind)

    def figures(self, *, verbose: bool) -> list[tuple[str, str]]:
        """(name, in words) of each of these lines, or of those of a summary."""
        return self.usefulness.figures(self.rows, self.certificate.prior.kind, verbose=verbose)

    def use_to_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return self.usefulness.to_json(self.rows, self.certificate.prior.kind)

    @property
    def bias_in_range(self) -> float | None:
        """An upper bound of |E[output | label] − label| for all labels in the range (numbers)."""
        return largest_bias(self.domain, self.certificate)

    @property
    def rows(self) -> int | None:
        """n of a private prior, where it is stated."""
        prior = self.certificate.prior
        return prior.rows if isinstance(prior, PrivatePriorClaims) else None


@dataclass(frozen=True)
class Artifact(Integers):
    """A verified artifact: its integers, its certificate, and the SHA-256 of the file."""

    certificate: Certificate
    sha256: str = ""

    def table(self, table: int) -> Table:
        """One of its tables."""
        stated, randomizer = self.certificate.of_table(table), self.tables[table]
        return Table(self.label, randomizer, stated, self.sha256)

    @property
    def only(self) -> Table | None:
        """The table that all rows have; None where public groups decide."""
        return None if self.groups.columns else self.table(0)

    @property
    def answers_with_sets(self) -> bool:
        """Whether private labels are numbers of sets of labels."""
        return sets_of(self.tables[0]) is not None

    @property
    def bias_in_range(self) -> float | None:
        """As of ``Table``; the largest of all tables."""
        return largest_bias(self.label, self.certificate)

    @cached_property
    def shortcomings(self) -> list[Shortcoming]:
        """Reasons why labels of some groups, or of all, are not useful, the worst first."""
        if self.only is not None:
            return self.only.shortcomings
        return group_shortcomings(self, self.certificate)


# ---- Where signatures lie: known without the library that makes and checks them.


def signature_path(artifact: Path) -> Path:
    """Where a signature of Ed25519 lies by default: NAME.onnx.sig beside NAME.onnx."""
    return artifact.with_name(artifact.name + ".sig")


def bundle_path(artifact: Path) -> Path:
    """Where a bundle of P-256 lies by default: NAME.onnx.sigstore.json beside NAME.onnx."""
    return artifact.with_name(artifact.name + ".sigstore.json")

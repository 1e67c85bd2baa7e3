"""Subset selection: a private label is a set of classes (Ye and Barg 2018; Wang et al. 2019).

With all sets of the best size, no ε-DP mechanism has less noise in the shares of the classes
(Theorem 15 of docs/privacy.md). If there are too many such sets, a block design replaces them
(Park, Nam and Lee 2023). At a large ε the best sets are single classes, which is randomized
response and is compiled as such.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import Domain, output_values
from labeldp_verify.graph import MAX_ENTRIES

from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.tables import TableLayout, response_layout, table_layout
from labeldp_compile.rounding.randomized_response import randomized_response
from labeldp_compile.rounding.subset_selection import subset_selection
from labeldp_compile.solve.block_designs.choice import best_candidate
from labeldp_compile.solve.block_designs.design import BlockDesign, Candidate

MAX_CLASSES = 1024  # a table has room for as many sets, and for twice as many


class SubsetSelection(Mechanism):
    """A set of classes for each label: the least noise in the shares that ε-DP allows."""

    kind: Literal["subset_selection"]
    form: ClassVar[Literal["window", "additive", "table"]] = "table"
    method: ClassVar[str] = "the best of a catalogue of block designs"
    seconds_a_label: ClassVar[float] = 4e-3
    answers = "sets"
    joins = True

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if the table of sets would be too large; this reads no label."""
        if domain.size > MAX_CLASSES:
            raise ValueError(
                f"subset_selection takes at most {MAX_CLASSES:,} classes, but there are "
                f"{domain.size:,}; use mechanism: {{kind: randomized_response}}, or join rare "
                "classes"
            )

    def build(self, problem: Problem) -> Solved:
        """The sets with the least noise for uniform classes; the prior is not used."""
        self.require_feasible(problem.domain, problem.loss, problem.epsilon)
        k, epsilon = problem.domain.size, problem.epsilon
        if _candidate(k, epsilon).is_response:
            values = output_values(problem.domain)
            response = randomized_response(values, range(k), epsilon, problem.word_bits)
            return Solved(response, classes=True)
        blocks = _design(k, epsilon).blocks
        return Solved(subset_selection(blocks, epsilon, problem.word_bits), classes=True)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: nothing depends on the prior."""
        k = domain.size
        if _candidate(k, epsilon).is_response:
            return [response_layout(k, k, epsilon)]
        layout = table_layout(k, len(_design(k, epsilon).blocks))
        return [replace(layout, bytes=layout.bytes + layout.outputs * (-(-k // 4) + 3))]


def beats_randomized_response(classes: int, epsilon: Fraction) -> bool:
    """Whether the best sets have more than one class."""
    if classes > MAX_CLASSES:
        return False
    return not _candidate(classes, epsilon).is_response


def most_blocks(classes: int) -> int:
    """The most sets that a table of ``classes`` labels can have."""
    return 1 << (MAX_ENTRIES // classes).bit_length() - 1


@lru_cache(maxsize=8)
def _candidate(classes: int, epsilon: Fraction) -> Candidate:
    return best_candidate(classes, exp_lower(epsilon), most_blocks(classes))


@lru_cache(maxsize=8)
def _design(classes: int, epsilon: Fraction) -> BlockDesign:
    return _candidate(classes, epsilon).design(classes)

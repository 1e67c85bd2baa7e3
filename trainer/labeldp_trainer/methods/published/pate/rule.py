"""How many teachers and queries: from the number of rows, classes, ε and δ alone.

Fixed on training rows of Fashion-MNIST of which 10,000 were held out, and on no test row: the noise
on a count is a fifth of all teachers, teachers have ten rows a class or, where queries would be too
few, four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from labeldp_trainer.methods.published.pate.release import VoteNoise

_TEACHERS_A_NOISE = 5
_ROWS_A_CLASS, _LEAST_ROWS_A_CLASS = 10, 4
_QUERIES_A_CLASS = 3
_MOST_QUERIES, _ROWS_A_QUERY = 3000, 20


@dataclass(frozen=True)
class Sizes:
    """T teachers, and the noise on their votes on Q queries."""

    teachers: int
    noise: VoteNoise


def chosen(
    rows: int,
    units: int,
    classes: int,
    epsilon: Fraction,
    delta: Fraction,
    teachers: int | None,
    queries: int | None,
    unit: str = "labels",
) -> Sizes:
    """What is given, and the rest by the rule. ``units`` are labels or users, as ``unit`` says.

    Raises ValueError if the noise hides what all teachers together say.
    """
    one = VoteNoise.least(1, classes, epsilon, delta).deviation  # it grows like √Q
    heard = _TEACHERS_A_NOISE * one  # teachers for one query
    if teachers is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, 1)) if queries is None else queries
        enough = heard * math.sqrt(min(_QUERIES_A_CLASS * classes, most))
        large = max(units / (_ROWS_A_CLASS * classes), enough)
        small = min(units / (_LEAST_ROWS_A_CLASS * classes), heard * math.sqrt(most))
        teachers = max(int(min(large, small)), 1)
    if queries is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, classes), rows)
        queries = min(int((teachers / heard) ** 2), most)
        if queries < min(classes, rows):
            raise ValueError(
                f"is out of reach: the noise drowns the votes of teachers, {teachers:,} at most "
                f"for {units:,} {unit}, on as many queries as there are classes ({classes:,}); "
                "raise it, or take one_release"
            )
    noise = VoteNoise.least(queries, classes, epsilon, delta)
    if noise.deviation > teachers:
        raise ValueError(
            f"is out of reach: the noise on each count has the standard deviation "
            f"{noise.deviation:,.3g}, and there are {teachers:,} teachers to hear; raise it, ask "
            "fewer queries, or take one_release"
        )
    return Sizes(teachers, noise)

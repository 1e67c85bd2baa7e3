"""Multipliers of labels that share a window, where only their sum is determined.

With a bias budget neighbouring labels may end in the same row. The conditions on columns then fix
the sum of their α, and any split of it is as good to them; but the bound needs every h_y negative
on the outputs of the window and positive on all others. Each α_y is put at the same fraction of
the range that this leaves it.
"""

from __future__ import annotations

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats
from labeldp_compile.solve.optimal_unbiased.problem import Problem
from labeldp_compile.solve.optimal_unbiased.windows import Columns

_MOST_CELLS = 4_000_000  # labels × outputs, beyond which it is not tried


def complete(problem: Problem, columns: Columns, alpha: Floats, beta: Floats) -> Floats:
    """Return α split anew within every group of labels with the same row.

    Args:
        problem: the problem. columns: the mechanism. alpha, beta: [k] multipliers.
    """
    k, m = problem.k, len(columns)
    cuts = np.unique(np.concatenate([[0], columns.intervals.first, columns.intervals.last + 1]))
    starts = cuts[cuts < k]
    if m == 0 or starts.size == k or k * m > _MOST_CELLS:
        return alpha
    v, index = columns.values, np.arange(k)[:, None]
    level = 0.5 * problem.prior[:, None] * (v - problem.labels[:, None]) ** 2 - beta[:, None] * v
    inside = (index >= columns.intervals.first) & (index <= columns.intervals.last)
    least = np.where(inside, level, -np.inf).max(axis=1)
    most = np.where(inside, np.inf, level).min(axis=1)
    done = alpha.copy()
    for i, j in zip(starts, np.append(starts[1:], k), strict=True):
        room = float((most[i:j] - least[i:j]).sum())
        if j - i > 1 and np.isfinite(room) and room > 0:
            share = float(alpha[i:j].sum() - least[i:j].sum()) / room
            done[i:j] = least[i:j] + share * (most[i:j] - least[i:j])
    return done

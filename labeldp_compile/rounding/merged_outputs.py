"""Merge rarely drawn outputs with a neighbour, so that lookup tables stay small.

A lookup bucket may hold only one segment boundary, so the narrowest segment decides the size of the
tables. Two neighbouring outputs become one at their weighted mean. Every row keeps its mean up to
the placement of its window, and by Jensen's inequality the spread shrinks. The cost is that windows
can be placed less finely.
"""

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray


def merge_rare_outputs(
    values: NDArray[np.float64], weights: NDArray[np.float64], least_share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outputs [m'] and weights [m'] in which every weight is at least ``least_share`` of the sum.

    ``values`` [m] increasing, ``weights`` [m] > 0. The rarest output is merged with its nearest
    neighbour in value until none is too rare.
    """
    v, c = [float(x) for x in values], [float(x) for x in weights]
    least = least_share * sum(c)
    after, before = [*range(1, len(c)), -1], list(range(-1, len(c) - 1))  # neighbours, −1: none
    rarest = [(weight, i) for i, weight in enumerate(c) if weight < least]
    heapify(rarest)
    left, gone = len(c), set[int]()
    while rarest and left > 2:
        weight, i = heappop(rarest)
        if i in gone or c[i] != weight:
            continue
        below = v[i] - v[before[i]] if before[i] >= 0 else np.inf
        above = v[after[i]] - v[i] if after[i] >= 0 else np.inf
        i = before[i] if below <= above else i
        j = after[i]
        total = c[i] + c[j]
        v[i], c[i] = (c[i] * v[i] + c[j] * v[j]) / total, total
        after[i] = after[j]
        if after[j] >= 0:
            before[after[j]] = i
        gone.add(j)
        left -= 1
        if total < least:
            heappush(rarest, (total, i))
    kept = [i for i in range(len(c)) if i not in gone]
    return np.array([v[i] for i in kept]), np.array([c[i] for i in kept])


def drop_rare_outputs(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    least_share: float,
    pillars: dict[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As ``merge_rare_outputs``, but every output remains one of the values.

    A rare output is dropped. Its weight goes to both neighbours, so that means are kept and the
    spread grows; an outermost one has only one neighbour. ``pillars`` are the weights of a
    randomizer on two of the values, which stay. If one of these is rare, weight moves to both.
    """
    c = weights.copy()
    least = least_share * float(c.sum())
    places = np.searchsorted(values, list(pillars)).tolist()
    theirs = np.array(list(pillars.values()))
    missing = [
        (least - c[i]) / (weight - c[i])
        for i, weight in zip(places, theirs, strict=True)
        if c[i] < min(least, weight)
    ]
    share = max(missing, default=0.0)
    c *= 1 - share
    c[places] += share * theirs
    kept = list(range(len(c)))
    while True:
        rare = [(c[i], n) for n, i in enumerate(kept) if c[i] < least and i not in places]
        if not rare:
            return values[kept], c[kept]
        n = min(rare)[1]
        i = kept.pop(n)
        below, above = kept[max(n - 1, 0)], kept[min(n, len(kept) - 1)]
        up = (values[i] - values[below]) / (values[above] - values[below]) if above != below else 0
        c[below] += (1 - up) * c[i]
        c[above] += up * c[i]

"""Alias tables: an integer distribution sampled with one gather and one Min (Walker 1977).

Weights that sum to 2^B are dealt to 2^c columns of 2^(B − c) words each: column j holds t words of
item j itself and the rest of one other item a, its alias. A B-bit word w lies in column
j = w mod 2^c at height w >> c. One entry a column decides:

    P = ((t − [j < a]) << c) | a          item(w) = min(w, P[j]) mod 2^c

because w ≤ P exactly for the t lowest heights. A column that is full of its own item has P = j.
Every item has a weight of at least 1 and keeps at least one word of its own column, so t − [j < a]
is never negative; columns behind the last item have t = 0 and an alias below j.
"""

from __future__ import annotations

from collections.abc import Sequence


def column_bits(items: int) -> int:
    """c: the least number of bits, at least 1, that tell the items apart."""
    return max((items - 1).bit_length(), 1)


def alias_entries(weights: Sequence[int], word_bits: int) -> list[int]:
    """[2^c] the entries P; a pure function of the weights.

    ``weights`` are ≥ 1 and sum to 2^word_bits; ValueError otherwise, or if there are more columns
    than words.
    """
    c = column_bits(len(weights))
    if c > word_bits:
        raise ValueError(f"{len(weights)} items do not fit a word of {word_bits} bits")
    if min(weights) < 1 or sum(weights) != 1 << word_bits:
        raise ValueError("the weights must be at least 1 and fill the word")
    height = 1 << (word_bits - c)
    own = [*weights, *[0] * ((1 << c) - len(weights))]
    entries = list(range(1 << c))
    lacking = [j for j, weight in enumerate(own) if weight < height]
    donors = [j for j, weight in enumerate(own) if weight > height]
    while lacking:
        j, a = lacking.pop(), donors[-1]
        entries[j] = ((own[j] - (j < a)) << c) | a
        own[a] -= height - own[j]
        if own[a] <= height:
            donors.pop()
            if own[a] < height:
                lacking.append(a)
    return entries


def sample(entries: Sequence[int], word: int) -> int:
    """The item of a B-bit word: what the graph computes."""
    columns = len(entries)
    return min(word, entries[word % columns]) % columns

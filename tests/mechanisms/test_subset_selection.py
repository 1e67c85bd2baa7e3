"""Subset selection: sets of labels in whole counts, their noise, and the bound on all others."""

from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.analysis.share_noise import least_share_noise, set_weights, share_noise
from labeldp_verify.forms import CategoricalDomain, ClassSets, IntegerDomain
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile import InputError
from labeldp_compile.mechanisms.mechanism import Problem
from labeldp_compile.mechanisms.subset_selection import (
    MAX_CLASSES,
    SubsetSelection,
    subset_selection,
)
from tests.fixtures.compiled import compile_text, sets_spec

MECHANISM = SubsetSelection(kind="subset_selection")
EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(2)]


def text_of(k, epsilon, name="class"):
    values = ", ".join(f"{name} {i}" for i in range(k))
    domain = f"{{kind: categorical, values: [{values}]}}"
    return sets_spec(domain, f"{{default: {name} 0}}", epsilon)


def solve(k, epsilon, word_bits=None):
    domain = CategoricalDomain(tuple(range(k)), 0)
    problem = Problem(domain, [1] * k, epsilon, "zero_one", word_bits)
    return domain, MECHANISM.build(problem).randomizer


@pytest.mark.parametrize("k", [2, 3, 7, 10, 31, 57, 100])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), *EPSILONS, Fraction(6)])
def test_the_noise_is_that_of_the_estimate_and_no_less_than_the_bound(k, epsilon):
    _, randomizer = solve(k, epsilon)
    table, weights = matrix(randomizer, range(k)), set_weights(randomizer)
    assert np.abs(table @ weights - np.eye(k)).max() < 1e-9
    variances = table @ weights**2 - 1.0 * np.eye(k)
    noise = share_noise(randomizer)
    assert float(noise) == pytest.approx(variances.sum() / k, rel=1e-9)
    least = least_share_noise(k, exp_lower(epsilon))
    assert least * (1 - Fraction(1, 10**12)) < noise < least * Fraction(105, 100)
    best_inverse = np.linalg.inv(table / table.mean(axis=0) @ table.T)
    assert float(least) <= np.trace(best_inverse) - 1 + 1e-9 * float(least)
    assert np.trace(best_inverse) - 1 <= float(noise) * (1 + 1e-9)


def test_the_loss_is_that_of_a_label_drawn_from_the_set():
    artifact = compile_text(text_of(6, 1))
    r, total = artifact.randomizer, Fraction(0)
    for y in range(6):
        for o, count in enumerate(r.counts[y]):
            members = r.sets.members(o)
            if y in members:
                total += Fraction(count, len(members))
    assert artifact.certificate.exact.noisy_label_loss == str(1 - total / r.words / 6)


def test_the_leftover_words_keep_the_estimate_unbiased():
    """Exactly: the first block has them under every label."""
    members = ClassSets(4, (0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100)).matrix.T
    for bits in range(8, 16):
        r = subset_selection(members, Fraction(1), bits)
        lows = [min(column) for column in zip(*r.counts, strict=True)]
        tops = [max(column) for column in zip(*r.counts, strict=True)]
        assert len({top - low for low, top in zip(lows, tops, strict=True)}) == 1
        assert len(set(lows[1:])) == 1 and 0 <= lows[0] - lows[1] < 3
        for c in range(4):
            hit = [
                Fraction(sum(row[o] for o in range(6) if r.sets.blocks[o] >> c & 1), r.words)
                for row in r.counts
            ]
            assert len({p for y, p in enumerate(hit) if y != c}) == 1 and hit[c] > max(
                p for y, p in enumerate(hit) if y != c
            )


def test_too_many_classes_and_too_few_words_are_refused():
    domain = IntegerDomain(0, MAX_CLASSES)
    with pytest.raises(ValueError, match="randomized_response"):
        MECHANISM.require_feasible(domain, "zero_one", Fraction(1))
    with pytest.raises(InputError, match="randomized_response"):
        compile_text(sets_spec("{kind: integer, min: 0, max: 2000}", "clamp", 1))
    with pytest.raises(ValueError, match="words of 4 bits"):
        solve(10, Fraction(1, 100), 4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: _with_blocks(r, r.sets.blocks[::-1]), "not what the probabilities"),
        (lambda r: _moved(r, 1), "what the probabilities|as much more likely"),
        (lambda r: _swapped(r, 0, 1), "not what the probabilities"),
    ],
    ids=["blocks", "words", "rows"],
)
def test_integers_that_are_no_design_have_no_noise(change, reason):
    _, r = solve(7, Fraction(1, 2))
    with pytest.raises(ValueError, match=reason):
        share_noise(change(r))


def test_pairs_that_are_not_balanced_are_refused():
    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    with pytest.raises(ValueError, match="pairs"):
        share_noise(subset_selection(members, Fraction(1), 20))


def _with_blocks(r, blocks):
    return type(r)(r.word_bits, r.counts, r.values, ClassSets(r.sets.classes, tuple(blocks)))


def _moved(r, step):
    rows = [list(row) for row in r.counts]
    rows[0][0], rows[0][1] = rows[0][0] + step, rows[0][1] - step
    return type(r)(r.word_bits, tuple(map(tuple, rows)), r.values, r.sets)


def _swapped(r, y, z):
    rows = list(r.counts)
    rows[y], rows[z] = rows[z], rows[y]
    return type(r)(r.word_bits, tuple(rows), r.values, r.sets)

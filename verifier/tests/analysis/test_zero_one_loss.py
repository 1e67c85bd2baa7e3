"""The 0-1 loss asks whether the float64 output is the label: forged noise against all its words.

On a lattice finer than float64 several lattice points share an output.
"""

import random
from collections import Counter
from fractions import Fraction

from labeldp_verify import check_bytes
from labeldp_verify.forms import RealDomain

from verifier.tests.analysed import noisy_label_loss
from verifier.tests.files import file_of
from verifier.tests.integers import composition, near_constant, random_additive

RANDOMIZERS = 400


def random_file(generator):
    """A domain whose labels float64 can tell apart, on a lattice that it often cannot."""
    labels, spacing = generator.randint(2, 4), generator.choice([1, 2, 4, 8])
    low = generator.choice([0.0, 1.0, 1e6, -1e6, 1e6 / 3, -3.0])
    step = max(generator.choice([1.0, 1e-5, 1e-5]), abs(low) * 2.0**-31)
    domain = RealDomain(low, low + step * (labels - 1), labels)
    scale = generator.choice([1, 2.0**-19, 2.0**-20, 2.0**-21 / 3])
    row = generator.choice([composition, near_constant])
    unit = step / spacing * scale
    r = random_additive(generator, labels, spacing, generator.randint(1, 2), 6, low, unit, row)
    return domain, r


def hits(r, row, label):
    """How many pairs of words give the label: word by word, as the definition says."""
    first = -(len(r.blocks) // 2)
    outputs = Counter()
    for j, block in enumerate(r.blocks):
        for i, inside in enumerate(r.shapes[first + j >= 0]):
            point = min(max(row * r.spacing + (first + j) * r.period + i, r.low), r.high)
            outputs[float(point) * r.unit + r.origin] += block * inside
    assert sum(outputs.values()) == r.words**2
    return outputs[label]


def test_the_loss_is_that_of_the_outputs():
    generator, shared = random.Random(12), 0
    for i in range(RANDOMIZERS):
        domain, r = random_file(generator)
        labels, weights = domain.labels(), [1] * domain.size
        same = sum(hits(r, row, float(label)) for row, label in enumerate(labels))
        expected = 1 - Fraction(same, r.words**2 * domain.size)
        assert noisy_label_loss(r, labels, weights, "zero_one") == (expected, expected)
        shared += len({r.value(t) for t in range(r.low, r.high + 1)}) < r.outputs
        if i % 25 == 0:
            report = check_bytes(file_of(domain, r, Fraction(59), "zero_one"))
            assert report.ok, report.checks[-1]
            assert report.certificate.exact.noisy_label_loss == str(expected)
    assert shared > RANDOMIZERS / 10  # not only easy ones

"""Sums over one denominator say exactly what one fraction a label says, however large they are."""

import random
from fractions import Fraction

from labeldp_verify.analysis import analyse, expected_loss
from labeldp_verify.analysis.grid_labels import strays
from labeldp_verify.analysis.losses import dual_is_feasible
from labeldp_verify.analysis.lower_bound import BiasRule, bound_value
from labeldp_verify.analysis.probabilities import row as counts_of
from labeldp_verify.forms import IntegerDomain, RealDomain, WindowRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, exp_bounds
from labeldp_verify.forms.randomizers import Segment, check_form

DOMAINS = (
    IntegerDomain(-3, 4),
    IntegerDomain(10**15, 10**15 + 1),
    RealDomain(-1.3, 2.4, 17),
    RealDomain(0.1, 100.2, 40, "unbiased"),  # some grid points take a neighbour's row
    RealDomain(1e6, 1e6 + 1, 9, "unbiased"),
)
PRIORS = {
    "uniform": lambda r: 1,
    "zeros": lambda r: r.randint(0, 1),
    "large": lambda r: r.randint(0, 2**62),
    "small": lambda r: r.randint(0, 9),
}
POINT = {
    "squared": lambda v, y: (v - y) ** 2 / 2,
    "absolute": lambda v, y: abs(v - y),
    "zero_one": lambda v, y: Fraction(v != y),
}


def randomizer_of(r, labels):
    """Any window randomizer: many segments an output, or none; windows of any place."""
    bits, m = r.choice([20, 61, 62]), r.randint(1, 6)
    base = [r.randint(1, (1 << bits) // (2 * m)) for _ in range(m)]
    window = (1 << bits) - sum(base)
    end = window + r.randint(0, min(window, (1 << 63) - 1 - sum(base) - window))
    number = r.choice([1, m, 2 * m, 15])
    cuts = [0, *sorted(r.sample(range(1, end), number - 1)), end]
    owners = [i % m for i in range(number)] if r.random() < 0.5 else r.choices(range(m), k=number)
    extra = [Segment(b - a, i) for a, b, i in zip(cuts, cuts[1:], owners, strict=False)]
    last = end - window
    offsets = [r.choice([0, last, r.randint(0, last)]) for _ in labels]
    offsets[r.randrange(len(labels))] = last
    known = [float(y) for y in labels] + [r.uniform(-9, 9) for _ in range(5)] + [2.0**-60, 0.0, 7.0]
    values = sorted(r.sample(sorted(set(known)), m))
    found = WindowRandomizer(bits, tuple(base), tuple(extra), tuple(offsets), tuple(values))
    check_form(found)
    return found


def cases():
    for seed in range(60):
        r = random.Random(seed)
        domain = r.choice(DOMAINS)
        prior = PRIORS[r.choice([*PRIORS])]
        weights = [prior(r) for _ in range(domain.size)]
        weights[-1] = weights[-1] or 1
        yield domain, randomizer_of(r, domain.labels()), weights


def of_label(randomizer, astray, i, point):
    """An expectation given a label, by its definition."""

    def of_row(row):
        pairs = zip(counts_of(randomizer, row), randomizer.values, strict=True)
        return sum(Fraction(n, randomizer.words) * point(Fraction(v)) for n, v in pairs)

    row, share = astray.get(i, (i, 0))
    return (1 - share) * of_row(i) + share * of_row(row)


def test_windows_by_their_definition():
    strayed = 0
    for domain, randomizer, weights in cases():
        analysis, labels, astray = analyse(randomizer), domain.labels(), strays(domain)
        strayed += len(astray)
        biases = analysis.biases(domain.labels(), astray)
        plain = [of_label(randomizer, astray, i, lambda v: v) - y for i, y in enumerate(labels)]
        assert biases == plain == analysis.biases(labels, astray)
        assert biases.largest() == max(map(abs, plain))
        assert biases.floats() == [float(b) for b in plain]
        total = sum(weights)
        squares = sum(w * b * b for w, b in zip(weights, plain, strict=True))
        assert biases.mean_square(weights) == squares / total
        rows = [
            [Fraction(n, randomizer.words) for n in counts_of(randomizer, i)]
            for i in range(len(labels))
        ]
        assert analysis.variances() == [
            sum(p * Fraction(v) ** 2 for p, v in zip(row, randomizer.values, strict=True))
            - sum(p * Fraction(v) for p, v in zip(row, randomizer.values, strict=True)) ** 2
            for row in rows
        ]
        for loss, point in POINT.items():
            mean = sum(
                w * of_label(randomizer, astray, i, lambda v, y=y, point=point: point(v, y))
                for i, (w, y) in enumerate(zip(weights, labels, strict=True))
                if w
            )
            for known in (labels, domain.labels()):
                assert expected_loss(analysis, known, weights, loss, astray) == (
                    mean / total,
                    mean / total,
                )
        # No window on the extra line covers more of an output than the stated ratio says.
        ratio = analysis.worst_ratio()
        for column in zip(*rows, strict=True):
            assert max(column) <= ratio * min(column)
    assert strayed > 20


def test_bounds_do_not_depend_on_how_the_prior_is_scaled():
    """Weights near 2^62 and beyond prove what their greatest common divisor's quotients prove."""
    r = random.Random(1)
    answers = set()
    for _ in range(40):
        k = r.randint(1, 5)
        labels = [Fraction(y) for y in range(k)]
        weights = [r.randint(0, 9) for _ in range(k)]
        weights[0] += 1
        mean = Fraction(sum(w * y for w, y in enumerate(weights)), sum(weights))
        shift = Fraction(r.choice([-1, 0, 1]), 10**6)
        alpha = [
            Fraction(w, sum(weights)) * (mean - y) ** 2 / 2 + shift
            for w, y in zip(weights, labels, strict=True)
        ]
        beta = [Fraction(r.randint(-3, 3), 1000) if w else Fraction(0) for w in weights]
        upper = exp_bounds(Fraction(r.choice([0, 1, 8])))[1]
        large = [w * (2**62 - 57) for w in weights]
        feasible = dual_is_feasible(labels, weights, upper, alpha, beta)
        assert dual_is_feasible(ExactNumbers.of(labels), large, upper, alpha, beta) == feasible
        answers.add(feasible)
        for rule in (
            BiasRule("unbiased"),
            BiasRule("max", Fraction(1, 7)),
            BiasRule("penalty", Fraction(3)),
        ):
            value = bound_value(labels, weights, alpha, beta, rule)
            assert value == bound_value(labels, large, alpha, beta, rule)
        assert value <= bound_value(labels, weights, alpha, beta, BiasRule("unbiased"))
    assert answers == {True, False}

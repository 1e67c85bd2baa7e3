"""What L labels of one user spend: L·ε₂, dp-accounting's ε at δ = 1e-10, and what integers prove.

53 labels, a falling public prior. The third figure is the least one, to 6 digits, that the integers
of `labeldp verify` prove for the same dominating pair: where dp-accounting's is smaller, float64
made it too small. Seconds are those of the proof. Prints a markdown table.
"""

import time
from decimal import Decimal
from fractions import Fraction

from labeldp_compile.composition import compose
from tests.fixtures.compiled import compile_text, integer_spec, public

DELTA = Decimal("1e-10")
MECHANISMS = {
    "rr_with_prior": "zero_one",
    "rr_on_bins": "squared",
    "optimal_unbiased": "squared",
    "laplace": "squared",
    "exponential": "absolute",
}


def randomizer(mechanism, loss, epsilon):
    prior = public(list(range(53, 0, -1)))
    text = integer_spec(53, mechanism, epsilon=epsilon, loss=loss, prior=prior)
    return compile_text(text).randomizer


def least_proved(composed, pure):
    low, high = Fraction(0), pure
    while high - low > high / 10**7:
        middle = (low + high) / 2
        proved = composed.delta(middle) <= Fraction(DELTA)
        low, high = (low, middle) if proved else (middle, high)
    return float(high)


def main():
    print("| mechanism | ε₂ | labels | L·ε₂ | dp-accounting | proved | seconds |")
    print("|---|---|---|---|---|---|---|")
    for mechanism, loss in MECHANISMS.items():
        for epsilon in ("0.5", "2"):
            table = randomizer(mechanism, loss, epsilon)
            for labels in (10, 100, 1000):
                composition = compose([[table]], [labels])
                started = time.perf_counter()
                exact = composition.exact
                seconds = time.perf_counter() - started
                stated = composition.accounted(float(DELTA))
                least = least_proved(exact, composition.pure)
                print(
                    f"| {mechanism} | {epsilon} | {labels:,} | {float(composition.pure):.6g} | "
                    f"{stated:.7g} | {least:.7g} | {seconds:.1f} |"
                )


if __name__ == "__main__":
    main()

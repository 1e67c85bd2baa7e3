"""A small file of every form, and of everything that a file may have besides its integers."""

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, JointDomain, RealDomain

from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import (
    grouped,
    laplace_like,
    pairs_of_four,
    random_table,
    response,
    some_windows,
)

GOLDEN = Path(__file__).parents[2] / "tests/golden"
FOUR = CategoricalDomain(("red", "green", "blue", "grün"), "green")
TABLE = random_table(random.Random(4), 5, (0.0, 1.0, 2.5, 3.0, 4.0), 24)
NOISE = laplace_like(5, 2, 4, word_bits=40, unit=0.5)
PAIR = JointDomain.of([CategoricalDomain(("no", "yes", "é"), "no"), IntegerDomain(-1, 1)])


def _window() -> bytes:
    return file_of(DOMAIN, some_windows(40)[3], 1, weights=[4, 3, 2, 1])


def _text() -> bytes:
    return file_of(
        FOUR, response(FOUR.values, range(4), Fraction(3, 2)), Fraction(3, 2), "zero_one"
    )


def _real() -> bytes:
    domain = RealDomain(-1.5, 2.5, 5, rounding="unbiased")
    return file_of(domain, response([-1.0, 0.5, 2.0], [0, 0, 1, 2, 2], 1), 1, "absolute")


def _joint() -> bytes:
    losses = [ColumnLoss("zero_one", Fraction(1)), ColumnLoss("absolute", Fraction(5, 2))]
    randomizer = response(tuple(range(9)), range(9), 2)
    return file_of(PAIR, randomizer, 2, "sum", columns=["sold", "value"], losses=losses)


def _golden(path: str) -> Callable[[], bytes]:
    return (GOLDEN / path).read_bytes


_MAKERS: dict[str, Callable[[], bytes]] = {
    "window": _window,
    "window of text": _text,
    "window of reals": _real,
    "window with a proved bound": _golden("plain/rr-on-bins-squared.onnx"),
    "table": lambda: file_of(IntegerDomain(0, 4), TABLE, 3),
    "additive": lambda: file_of(IntegerDomain(0, 4), NOISE, Fraction(13, 10)),
    "sets": lambda: file_of(FOUR, pairs_of_four(), 1, "zero_one"),
    "joint": _joint,
    "groups of integers": lambda: file_of(DOMAIN, grouped()),
    "groups of text": lambda: file_of(DOMAIN, grouped(("a", "b", "ü"))),
}
NAMES = tuple(_MAKERS)
# Files with the claims that none of these has.
CLAIMED = (
    *("persons/window", "persons/groups", "radii/absolute", "ranges/geometric-unbiased"),
    *("groups/bands", "groups/columns", "ranges/public-nulls"),
    *("portable/optimal-unbiased", "portable/laplace-real-unbiased"),
)


@cache
def artifact(name: str) -> bytes:
    """The bytes of one of them."""
    return _MAKERS[name]() if name in _MAKERS else _golden(f"{name}.onnx")()

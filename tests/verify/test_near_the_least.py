"""A loss is at most (1 + gap) times the least: in every command, and if the gap is wide."""

from fractions import Fraction

from labeldp_verify.claims import near_least
from labeldp_verify.claims.utility import bound_facts


def test_a_gap_is_relative_to_the_bound_and_rounded_up():
    assert near_least(0.0) == "the least possible"
    assert near_least(1e-9) == "at most (1 + 1.1e-09) times the least possible"
    assert near_least(110.2) == "at most 112 times the least possible"
    assert near_least(None) == "above a lower bound of 0"
    for bound, loss, gap in ((Fraction(1, 3), Fraction(1), 2.0), (Fraction(0), Fraction(0), 0.0)):
        assert bound_facts(bound, loss)["utility.certified_gap"] == gap
    for bound in (None, Fraction(0)):
        assert bound_facts(bound, Fraction(1))["utility.certified_gap"] is None

"""How many teachers and queries: what the rule says, from sizes, ε and δ alone."""

from fractions import Fraction

import pytest
from labeldp_trainer.methods.published.pate import chosen

DELTA = Fraction(1, 10**5)


def sizes(epsilon, rows=60_000, classes=10, teachers=None, queries=None, units=None):
    units = rows if units is None else units
    return chosen(rows, units, classes, Fraction(epsilon), DELTA, teachers, queries)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "8"])
@pytest.mark.parametrize(("rows", "classes"), [(60_000, 10), (3_000_000, 100), (30_000, 2)])
def test_votes_are_heard_and_teachers_have_rows(rows, classes, epsilon):
    found = sizes(epsilon, rows, classes)
    assert found.deviation <= found.teachers / 4.9
    assert rows / found.teachers >= 4 * classes
    assert classes <= found.queries <= 3000


def test_more_epsilon_more_queries_and_teachers_with_more_rows():
    found = [sizes(epsilon) for epsilon in ("0.1", "0.5", "2", "8")]
    assert [each.queries for each in found] == sorted(each.queries for each in found)
    assert found[0].teachers > found[2].teachers > found[3].teachers


def test_what_is_given_is_kept():
    assert sizes("1", teachers=300).teachers == 300
    given = sizes("1", queries=70)
    assert given.queries == 70 and given.deviation <= given.teachers / 4.9
    both = sizes("1", teachers=200, queries=50)
    assert (both.teachers, both.queries) == (200, 50)


def test_users_are_the_units():
    assert sizes("1", units=6_000).teachers <= 6_000 / 40


@pytest.mark.parametrize(
    "given", [{"epsilon": "0.01"}, {"epsilon": "1", "rows": 200}, {"epsilon": "1", "classes": 900}]
)
def test_out_of_reach(given):
    with pytest.raises(ValueError, match="is too small: the noise hides the votes"):
        sizes(**given)

"""The check that is proved, extracted to OCaml, agrees with the verifier on every table."""

from fractions import Fraction

import pytest
from labeldp_verify.analysis import analyse

from tests.proofs.artifacts import old_file
from tests.proofs.second_verifier import ask, build, line_of, questions, verdict


@pytest.fixture(scope="module")
def program(theory, ocaml, tmp_path_factory):
    return build(tmp_path_factory.mktemp("extracted"), theory)


def test_random_and_altered_tables(program):
    asked = questions(1, 400)
    verdicts = ask(program, [line for line, _ in asked])
    assert verdicts == [ours for _, ours in asked]
    for form in "wtea":
        both = {ours for line, ours in asked if line[0] == form}
        assert both == {True, False}


@pytest.mark.parametrize("name", ["optimal-unbiased", "exponential", "laplace", "rr-top-k"])
def test_artifacts_at_their_own_ratio(program, name):
    r = old_file(name)[0].lookup
    exact = analyse(r).worst_ratio()
    claims = [exact, exact - Fraction(1, exact.denominator + 1)]
    assert [verdict(r, claim) for claim in claims] == [True, False]
    assert ask(program, [line_of(r, claim) for claim in claims]) == [True, False]

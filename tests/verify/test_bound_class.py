"""A bound is only accepted for a randomizer of the class that it speaks of."""

from fractions import Fraction

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import IntegerDomain, WindowRandomizer
from labeldp_verify.graph import write_model

from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.stated import stated_certificate

TWO_LABELS = INTEGER_SPEC.replace("max: 9", "max: 1").replace(
    "[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]", "[1, 1]"
)
UNBIASED = TWO_LABELS.replace("rr_on_bins", "optimal_unbiased")


def certified(domain, randomizer, kind="public", weights=(1, 1)):
    prior = {"kind": kind, "weights": list(weights)}
    provenance = Declaration("t", "m", "y", Fraction(1), Fraction(0), prior, "0" * 64, {})
    return stated_certificate(domain, randomizer, "squared", provenance).to_json()


def test_a_coin_of_one_bit_is_not_unbiased():
    # The forger chooses the word size: a tolerance of one step of it would allow half the range.
    domain = IntegerDomain(0, 1)
    coin = WindowRandomizer(1, (1, 1), (), (0, 0), (0.0, 1.0))
    certificate, honest = certified(domain, coin), compile_text(UNBIASED).certificate.to_json()
    assert check_bytes(write_model(domain, coin, certificate)).ok
    certificate["optimality"] = honest["optimality"]
    for section, key in (("utility", "loss_lower_bound"), ("exact", "loss_lower_bound")):
        certificate[section][key] = honest[section][key]
    certificate["utility"]["certified_gap"] = 0.0
    report = check_bytes(write_model(domain, coin, certificate))
    assert not report.ok and report.checks[-1].name == "optimality"
    assert "this one is biased" in report.checks[-1].detail


def test_short_words_claim_no_bound_over_unbiased_randomizers():
    text = INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased")
    artifact = compile_text(text, word_bits=14)
    assert check_bytes(artifact.model).ok
    assert artifact.certificate.optimality is None
    assert compile_text(text).certificate.optimality is not None


def test_a_bound_below_zero_says_nothing():
    artifact = compile_text(TWO_LABELS)
    domain, certificate = IntegerDomain(0, 1), artifact.certificate.to_json()
    certificate["optimality"]["alpha"][0] = "-1000"
    report = check_bytes(write_model(domain, artifact.randomizer, certificate))
    assert not report.ok and "the bound is negative" in report.checks[-1].detail


@pytest.mark.parametrize("weights", [(1, 2), (0, 1)])
def test_a_uniform_prior_is_uniform(weights):
    domain = IntegerDomain(0, 1)
    coin = WindowRandomizer(1, (1, 1), (), (0, 0), (0.0, 1.0))
    certificate = certified(domain, coin, "uniform", weights)
    report = check_bytes(write_model(domain, coin, certificate))
    assert not report.ok and "not uniform" in report.checks[-1].detail

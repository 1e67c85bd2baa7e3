"""Forgeries that once verified, and files that once took for ever."""

from fractions import Fraction

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import IntegerDomain, RealDomain, WindowRandomizer
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import write_model

from labeldp_compile.rounding.windows import randomized_response
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.stated import stated_certificate
from verifier.tests.files import rebuilt


def forge(domain, randomizer, like, loss="absolute"):
    """A well-formed file whose certificate was computed for other, honest outputs."""
    epsilon = Fraction(1)
    prior = {"kind": "uniform", "weights": [1] * domain.size}
    provenance = Declaration("x", "rr", "y", epsilon, Fraction(0), prior, "0" * 64, {})
    certificate = stated_certificate(domain, like, loss, provenance).to_json()
    return write_model(domain, randomizer, certificate)


@pytest.mark.parametrize("values", [(2, 0, 1), ("2", "0e0", " 1/1 "), (2.0, 0.0, 1.0), (0, 1, 2)])
def test_outputs_must_be_increasing_float64_for_numbers(values):
    domain = IntegerDomain(0, 2)
    honest = randomized_response([0.0, 1.0, 2.0], range(3), Fraction(1))
    fields = {name: getattr(honest, name) for name in honest.__dataclass_fields__}
    forged = WindowRandomizer(**{**fields, "values": values})
    report = check_bytes(forge(domain, forged, honest))
    assert not report.ok and report.checks[-1].name == "tables"


def test_grids_that_float64_cannot_tell_apart_are_refused():
    domain = RealDomain(2.0**53, 2.0**53 + 4, 9)
    assert not domain.is_faithful()
    honest = randomized_response([0.0, 1.0], [0] * 4 + [1] * 5, Fraction(1))
    report = check_bytes(forge(domain, honest, honest))
    assert not report.ok and "grid of labels" in report.checks[-1].detail


@pytest.mark.parametrize("text", ["1e30000000", "1e9999999999", "9" * 100_000, "1/0", "", "nan"])
@pytest.mark.parametrize("key", ["epsilon_label", "epsilon_prior"])
def test_numbers_that_do_not_end(key, text):
    model = compile_text(INTEGER_SPEC).model
    assert not check_bytes(rebuilt(model, lambda c: c["exact"].update({key: text}))).ok


def test_outputs_of_thousands_of_segments_are_counted():
    # Two outputs alternate, and every window covers half of all segments.
    count = 8000
    extra = tuple(Segment(1, i % 2) for i in range(2 * count))
    base = (2**14 - count) // 2
    randomizer = WindowRandomizer(14, (base, base), extra, (0, count), (0.0, 1.0))
    domain = IntegerDomain(0, 1)
    honest = randomized_response([0.0, 1.0], [0, 1], Fraction(1))
    report = check_bytes(forge(domain, randomizer, honest))
    assert not report.ok and report.checks[-1].detail.endswith("the integers give '256/131'")


def test_the_printed_bound_is_not_rounded_down():
    report = check_bytes(compile_text(INTEGER_SPEC.replace("1.0", "12.3456789012351")).model)
    detail = next(c.detail for c in report.checks if c.name == "privacy")
    bound = Fraction(report.certificate.exact.epsilon_label_bound)
    printed = Fraction(detail.split("ε ≤ ")[1].split(",")[0])
    assert printed == bound

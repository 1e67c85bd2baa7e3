"""Declared facts of a private prior that cannot be true are no facts: such a file is refused."""

from pathlib import Path

import pytest
from labeldp_verify import check_bytes

from verifier.tests.files import rebuilt

OLD = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def private():
    return next(OLD.rglob("auto-private-prior.onnx")).read_bytes()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", -5),
        ("rows", 0),
        ("rows", 2**53),
        ("labels", 7),
        ("l1_sensitivity", 0),
        ("l1_sensitivity", -2),
        ("l1_sensitivity", 3),
        ("scale", 0.0),
        ("scale", -60.0),
        ("scale", 1.0),
    ],
)
def test_an_impossible_fact_does_not_verify(private, field, value):
    def change(certificate):
        assert certificate["prior"][field] != value
        certificate["prior"][field] = value

    report = check_bytes(rebuilt(private, change))
    failed = next(check for check in report.checks if not check.ok)
    assert failed.name == "claims" and "the prior" in failed.detail
    assert "DO NOT USE" in " ".join(report.in_words("x.onnx")).upper()

"""What a file can know of ε₁: a compile spent it. How many did, no file shows."""

from datetime import date
from pathlib import Path

import pytest
from labeldp_verify import check_bytes

from labeldp_compile.report.page import examine, report_page
from labeldp_compile.report.registry import registry_entry
from tests.report.reading import Reader

OLD = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def private():
    return next(OLD.rglob("auto-private-prior.onnx"))


def test_the_report_claims_no_single_compile(private):
    page = report_page(examine(private))
    text = " ".join(" ".join(Reader(page).sections.values()).split())
    assert "spent once" not in text and "once; then" not in text
    assert "each compile that reads the data spends ε = " in text
    assert "also randomized has spent at least" in text
    assert "each time that a compile reads the data" in text


def test_verify_and_the_registry_say_at_least(private):
    report = check_bytes(private.read_bytes()).require()
    for brief in (False, True):
        words = " ".join(report.in_words("x.onnx", brief=brief))
        assert "total ε" in words and "at least 2 (declared) for a label that the prior" in words
    entry = registry_entry(check_bytes(private.read_bytes()), date(2026, 1, 31))
    said = "There was at least one such compile"
    assert said in " ".join(entry.split())

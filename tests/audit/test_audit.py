"""``labeldp audit``: silent on faultless randomizers, and loud on planted violations.

benchmarks/audit.py runs all violations at ten million samples, and two hundred random specs.
"""

import importlib
import json
import random

import numpy as np
import pytest
from labeldp_verify.opening import open_artifact

from labeldp_compile.audits.audit import AuditClaim, audit_target, choose_labels
from labeldp_compile.audits.randomizer import (
    ArtifactTarget,
    FunctionTarget,
    Reference,
    choose_cells,
    parse_labels,
    told_from_zero,
)
from tests.cli.test_cli import labeldp
from tests.fixtures import planted
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.random_specs import random_spec

RESPONSE = INTEGER_SPEC.replace("rr_on_bins", "randomized_response")
SOFT = RESPONSE.replace("min: 0, max: 9", f"min: 0, max: {planted.K - 1}").replace(
    "{kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}", "{kind: uniform}"
)


def write(directory, text):
    path = directory / "x.onnx"
    path.write_bytes(compile_text(text).model)
    return path


def audited(name, samples, processes=False):
    target = FunctionTarget(f"tests.fixtures.planted:{name}")
    claim = AuditClaim(planted.EPSILON, "claimed", planted.K)
    labels = parse_labels(planted.LABELS)
    return audit_target(target, labels, claim, samples, processes=processes)


@pytest.fixture
def rarely_wrong(monkeypatch):
    """Audits accuse a faultless randomizer once in 10^6 times; for tests that is too often."""
    module = importlib.import_module("labeldp_compile.audits.audit")
    for name in ("_EPSILON_ERROR", "_OTHER_ERROR", "CHI_SQUARE_ERROR"):
        monkeypatch.setattr(module, name, getattr(module, name) / 1000)


def failed(report):
    return {finding.name for finding in report.findings if finding.ok is False}


@pytest.mark.usefixtures("rarely_wrong")
def test_a_faultless_function_is_not_accused():
    report = audited("faultless_noise", 1_000_000)
    assert report.ok and not failed(report)
    assert "independent" not in report.findings[0].detail
    assert 0.3 < report.epsilon_lower_bound <= planted.EPSILON
    assert [finding.ok for finding in report.findings] == [True, True, True, None]


# The samples are what the violation needs; benchmarks/audit.py tries all of them, with 10 million.
@pytest.mark.parametrize(
    ("name", "samples"),
    [
        pytest.param("wrong_scale", 10_000_000, marks=pytest.mark.slow),
        pytest.param("redrawn_tail", 10_000_000, marks=pytest.mark.slow),
        ("clamped_around_the_label", 100_000),
        ("clamped_to_the_labels_of_the_call", 1_000_000),
        ("swapped_entries", 100_000),
        pytest.param("neighbours_of_the_call", 5_000_000, marks=pytest.mark.slow),
        ("word_for_two_rows", 100_000),
        ("words_of_a_block", 1_000_000),
        ("opposite_words", 1_000_000),
        ("repeated_by_forks", 100_000),
        ("repeated_by_restarts", 100_000),
    ],
)
def test_a_planted_violation_is_found(name, samples):
    expected = planted.VIOLATIONS[name]
    report = audited(name, samples, processes=expected == "processes")
    assert expected in failed(report)
    # What the bound on ε supposes is said where it does not hold, and nowhere else.
    refuted = bool(failed(report) & {"rows", "independence"})
    assert ("only if rows are independent, and" in report.findings[0].detail) == refuted


def test_minus_zero_is_another_output_than_zero():
    assert "privacy" in failed(audited("sign_of_zero", 200_000))
    cells = choose_cells(told_from_zero(np.array([0.0, -0.0] * 9)))
    assert [cells.name(cell) for cell in range(2)] == ["-0", "0"]


@pytest.mark.usefixtures("rarely_wrong")
@pytest.mark.parametrize("number", range(6))
def test_the_bound_stays_below_the_certified_epsilon(tmp_path, number):
    text = random_spec(random.Random(number))
    path = write(tmp_path, text)
    decoded = open_artifact(path).table(0)
    labels = choose_labels(decoded.domain.size)
    reference = Reference(decoded, labels)
    bound = decoded.certificate.privacy.epsilon_label_bound
    claim = AuditClaim(bound, "certified", decoded.domain.size, reference)
    report = audit_target(ArtifactTarget(path), reference.inputs(), claim, 100_000, processes=False)
    assert report.ok, (text, report)
    assert 0 <= report.epsilon_lower_bound <= bound
    assert len(report.counts) == len(labels)


@pytest.mark.usefixtures("rarely_wrong")
def test_the_command_on_a_file(tmp_path):
    path = write(tmp_path, INTEGER_SPEC)
    result = labeldp("audit", path, "--samples", 100_000, "--json", "--no-processes")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["ok"] and report["format_version"] == "1.0"
    assert 100_000 * 0.9 < report["samples"] < 100_000 * 1.6
    assert 0.7 < report["epsilon_lower_bound"] <= report["epsilon"] <= 1
    assert {finding["name"] for finding in report["findings"]} == {
        "privacy",
        "outputs",
        "distribution",
        "rows",
        "independence",
        "processes",
    }
    assert len(report["labels"]) == 10
    assert all(0 < label["p_value"] <= 1 for label in report["labels"])


@pytest.mark.usefixtures("rarely_wrong")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [("swapped_rows", "distribution"), ("faultless_noise", "outputs"), ("faultless_response", "")],
)
def test_a_function_beside_a_file(tmp_path, name, wrong):
    path = write(tmp_path, SOFT)
    function = f"tests.fixtures.planted:{name}"
    result = labeldp("audit", path, "--callable", function, "--samples", 600_000, "--no-processes")
    assert result.exit_code == (1 if wrong else 0)
    assert (f"FAILED {wrong}" in result.stdout) == bool(wrong)
    assert "np." not in result.stdout
    assert ("VIOLATION" in result.stdout) == bool(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--callable", "tests.fixtures.planted:wrong_scale"], "needs --labels and --epsilon"),
        (["--callable", "nothing", "--labels", "0..3", "--epsilon", 1], "MODULE:FUNCTION"),
        (["--callable", "no.such:f", "--labels", "0..3", "--epsilon", 1], "cannot import"),
        (["--callable", "math:pi", "--labels", "0..3", "--epsilon", 1], "is not a function"),
        (["--callable", "math:sqrt", "--labels", "0..3", "--epsilon", 1], "raised TypeError"),
        (["--callable", "numpy:complex64", "--labels", "0..3", "--epsilon", 1], "a complex"),
        (["--callable", "numpy:abs", "--labels", "3", "--epsilon", 1], "at least two labels"),
    ],
)
def test_wrong_input_is_explained(arguments, message):
    result = labeldp("audit", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("rarely_wrong")
@pytest.mark.parametrize("name", ["faultless_in_place", "faultless_with_a_buffer", "only_nan"])
def test_arrays_that_a_function_keeps_or_changes_accuse_nobody(name):
    report = audited(name, 100_000)
    assert report.ok and report.epsilon_lower_bound <= planted.EPSILON


def audit_of(name):
    flags = ("--labels", planted.LABELS, "--epsilon", "1", "--samples", "100000", "--no-processes")
    return labeldp("audit", "--callable", f"tests.fixtures.planted:{name}", *flags, "--json")


@pytest.mark.parametrize("name", ["continuous_noise", "number_or_text", "integer_beside_a_float"])
def test_outputs_that_differ_are_counted_apart(name):
    # With few samples the pilot has less outputs than are counted one by one.
    assert failed(audited(name, 100_000)) == {"privacy"}


@pytest.mark.parametrize(
    "name, code, message",
    [
        ("ends_the_process", 2, "raised SystemExit: 0"),
        ("raises_for_the_terminal", 2, "raised ValueError"),
        ("interrupted", 130, "interrupted"),
        ("continuous_noise_as_text", 2, "texts that occur only once"),
    ],
)
def test_a_function_that_does_not_answer_is_not_passed(name, code, message):
    result = audit_of(name)
    assert result.exit_code == code and message in result.stderr
    assert "\x1b" not in result.stderr and result.stdout == ""


@pytest.mark.usefixtures("rarely_wrong")
def test_only_the_report_is_on_standard_output_and_it_is_printable():
    assert json.loads(audit_of("faultless_with_a_buffer").stdout)["ok"] is True
    found = json.loads(audit_of("text_for_the_terminal").stdout)["findings"][0]
    assert found["ok"] is False and "\x1b" not in found["detail"]

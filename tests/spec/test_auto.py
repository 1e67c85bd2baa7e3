"""``mechanism: auto`` chooses by loss and goal, and the certificate says why."""

import pytest
from labeldp_verify import check_bytes

from labeldp_compile.spec import parse_spec
from labeldp_compile.spec_match import spec_check
from tests.helpers import INTEGER_SPEC, compile_text


def with_auto(loss, goal):
    options = "" if goal is None else f", goal: {goal}"
    return INTEGER_SPEC.replace("loss: squared", f"loss: {loss}").replace(
        "{kind: rr_on_bins}", f"{{kind: auto{options}}}"
    )


@pytest.mark.parametrize(
    ("loss", "goal", "chosen"),
    [
        ("zero_one", None, "rr_with_prior"),
        ("zero_one", "labels", "rr_with_prior"),
        ("squared", None, "optimal_unbiased"),
        ("squared", "training", "optimal_unbiased"),
        ("squared", "labels", "rr_on_bins"),
        ("absolute", "training", "rr_on_bins"),
        ("poisson", "training", "rr_on_bins"),
        ("absolute", "labels", "rr_on_bins"),
    ],
)
def test_choice_and_reason(loss, goal, chosen):
    spec = parse_spec(with_auto(loss, goal))
    assert spec.named_mechanism.kind == chosen
    assert chosen in spec.auto_reason and loss in spec.auto_reason


def test_the_certificate_says_why_and_agrees_with_the_spec():
    text = with_auto("squared", "training")
    artifact = compile_text(text)
    assert artifact.certificate.mechanism == "optimal_unbiased"
    assert "learns the mean" in artifact.certificate.auto
    report = check_bytes(artifact.model, spec_check(text.encode()))
    complaints = report.checks[-1].detail
    assert "digest differs" in complaints and "mechanism" not in complaints


def test_a_named_mechanism_has_no_reason():
    assert parse_spec(INTEGER_SPEC).auto_reason is None
    assert compile_text(INTEGER_SPEC).certificate.auto is None


def test_real_labels_round_as_the_chosen_mechanism_needs():
    text = with_auto("squared", "training").replace(
        "{kind: integer, min: 0, max: 9}", "{kind: real, min: 0, max: 9, points: 10}"
    )
    assert parse_spec(text).domain.rounding == "unbiased"
    labels = parse_spec(text.replace("goal: training", "goal: labels"))
    assert labels.domain.rounding == "nearest"

"""The goal of a spec, what ``mechanism: auto`` makes of it, and that the certificate says why."""

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import matrix

from labeldp_compile.errors import SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_check, spec_disagreements
from tests.fixtures.specs import compiled, spec


def auto(loss="zero_one", goal="training", **changes):
    return spec(mechanism="auto", loss=loss, goal=goal, **changes)


@pytest.mark.parametrize(
    ("loss", "goal", "chosen"),
    [
        ("zero_one", None, "subset_selection"),
        ("zero_one", "labels", "rr_with_prior"),
        ("squared", None, "optimal_unbiased"),
        ("squared", "training", "optimal_unbiased"),
        ("squared", "labels", "rr_on_bins"),
        ("absolute", "training", "staircase"),
        ("poisson", "training", "rr_on_bins"),
        ("absolute", "labels", "rr_on_bins"),
    ],
)
def test_choice_and_reason(loss, goal, chosen):
    parsed = parse_spec(auto(loss, goal))
    assert parsed.goal == (goal or "training") and parsed.named_mechanism.kind == chosen
    assert all(word in parsed.auto_reason for word in (chosen, loss, f"goal: {parsed.goal}"))


def test_sets_are_chosen_where_they_say_more_than_labels():
    private = {"kind": "private", "data": "x.csv"}
    for privacy, chosen in (
        ({"epsilon": 0.5}, "subset_selection"),
        ({"epsilon": 9}, "randomized_response"),
        # The ε of the label decides.
        ({"epsilon": 2.2, "split": {"prior": 1.9, "label": 0.3}}, "subset_selection"),
    ):
        assert parse_spec(auto(prior=private, **privacy)).named_mechanism.kind == chosen


def test_the_certificate_says_why_and_agrees_with_the_spec():
    text = auto("squared")
    artifact = compiled(text)
    assert artifact.certificate.mechanism == "optimal_unbiased"
    assert "learns the mean" in artifact.certificate.auto
    complaints = check_bytes(artifact.model, spec_check(text.encode())).checks[-1].detail
    assert "digest differs" in complaints and "mechanism" not in complaints


def test_real_labels_round_as_the_chosen_mechanism_needs():
    domain = {"kind": "real", "min": 0, "max": 9, "points": 10}
    for goal, rounding in (("training", "unbiased"), ("labels", "nearest")):
        assert parse_spec(auto("squared", goal, domain=domain)).domain.rounding == rounding


def test_the_goal_is_one_of_two():
    with pytest.raises(SpecError, match="goal: 'trainng' is unknown; did you mean 'training'"):
        parse_spec(spec(goal="trainng"))


def test_a_named_mechanism_has_a_goal_no_reason_and_the_same_bytes():
    named = [spec(goal=goal) for goal in (None, "training", "labels")]
    assert [parse_spec(text).goal for text in named] == ["training", "training", "labels"]
    assert len({compiled(text).model for text in named}) == 1
    certificate = compiled(named[2]).certificate
    assert certificate.goal is None and certificate.auto is None


def test_the_certificate_knows_the_goal_and_verify_compares_it():
    text = auto("squared", "labels")
    certificate = compiled(text).certificate
    assert certificate.goal == "labels"
    other = spec_disagreements(auto("squared", "training").encode(), certificate)
    assert "goal: the spec says training, the certificate labels" in other
    same = spec_disagreements(text.encode(), certificate)
    assert not any(line.startswith("goal") for line in same)


@pytest.mark.parametrize("ones", [15, 50, 99])
def test_categories_for_training_keep_every_category(ones):
    """Two answers came to one before: with 15 % ones every private label was the same."""
    text = auto(values=[0, 1, 2], weights=[100 - ones, ones, 0.1])
    assert np.linalg.matrix_rank(matrix(compiled(text).randomizer, range(3))) == 3

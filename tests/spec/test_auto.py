"""The goal of a spec, what ``mechanism: auto`` makes of it, and that the certificate says why."""

import re

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import matrix

from labeldp_compile.errors import SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_check, spec_disagreements
from tests.fixtures.compiled import INTEGER_SPEC, compile_text


def with_auto(loss, goal, older=False):
    text = INTEGER_SPEC.replace("loss: squared", f"loss: {loss}")
    if goal is None:
        return text.replace("{kind: rr_on_bins}", "{kind: auto}")
    if older:
        return text.replace("{kind: rr_on_bins}", f"{{kind: auto, goal: {goal}}}")
    text = text.replace("{kind: rr_on_bins}", "{kind: auto}")
    return text.replace("version: 1\n", f"version: 1\ngoal: {goal}\n")


@pytest.mark.parametrize(
    ("loss", "goal", "chosen"),
    [
        ("zero_one", None, "subset_selection"),
        ("zero_one", "training", "subset_selection"),
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
    for older in (False, True):
        spec = parse_spec(with_auto(loss, goal, older))
        assert spec.goal == (goal or "training")
        assert spec.named_mechanism.kind == chosen
        assert chosen in spec.auto_reason and loss in spec.auto_reason
        assert f"goal: {spec.goal}" in spec.auto_reason


def test_sets_are_chosen_where_they_say_more_than_labels():
    text = with_auto("zero_one", "training")
    assert "epsilon: 1.0" in text
    for epsilon, chosen in (("0.5", "subset_selection"), ("9", "randomized_response")):
        spec = parse_spec(text.replace("epsilon: 1.0", f"epsilon: {epsilon}"))
        assert spec.named_mechanism.kind == chosen


def test_the_epsilon_of_the_label_decides():
    text = with_auto("zero_one", "training")
    text = text.replace("epsilon: 1.0", "epsilon: 2.2, split: {prior: 1.9, label: 0.3}")
    text = re.sub("prior: .kind.*", "prior: {kind: private, data: x.csv}", text)
    assert parse_spec(text).named_mechanism.kind == "subset_selection"


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


def test_two_places_must_agree():
    text = with_auto("squared", "training", older=True)
    assert parse_spec(text.replace("name:", "goal: training\nname:")).goal == "training"
    with pytest.raises(SpecError, match=r"spec:3: goal: labels here, but training in mechanism"):
        parse_spec(text.replace("name:", "goal: labels\nname:"))
    # Stated is stated, even where it is the default.
    other = with_auto("squared", "labels", older=True)
    with pytest.raises(SpecError, match="give it only here"):
        parse_spec(other.replace("name:", "goal: training\nname:"))


def test_the_goal_is_one_of_two():
    with pytest.raises(SpecError, match="goal: 'trainng' is unknown; did you mean 'training'"):
        parse_spec(INTEGER_SPEC.replace("name:", "goal: trainng\nname:"))


def test_a_named_mechanism_has_a_goal_and_compiles_to_the_same_bytes():
    named = [
        INTEGER_SPEC.replace("name:", f"{goal}name:")
        for goal in ("", "goal: training\n", "goal: labels\n")
    ]
    assert [parse_spec(text).goal for text in named] == ["training", "training", "labels"]
    models = {compile_text(text).model for text in named}
    assert len(models) == 1
    assert compile_text(named[2]).certificate.goal is None


@pytest.mark.parametrize("older", [False, True])
def test_the_certificate_knows_the_goal_and_verify_compares_it(older):
    text = with_auto("squared", "labels", older)
    certificate = compile_text(text).certificate
    assert certificate.goal == "labels"
    other = text.replace("goal: labels", "goal: training").encode()
    found = spec_disagreements(other, certificate)
    assert "goal: the spec says training, the certificate labels" in found
    assert not any(
        line.startswith("goal") for line in spec_disagreements(text.encode(), certificate)
    )


@pytest.mark.parametrize("ones", [15, 50, 99])
def test_categories_for_training_keep_every_category(ones):
    """Two answers came to one before: with 15 % ones every private label was the same."""
    text = f"""
version: 1
name: rare
label:
  column: y
  domain: {{kind: categorical, values: [0, 1, 2]}}
  out_of_domain: {{default: 0}}
loss: zero_one
privacy: {{epsilon: 1}}
prior: {{kind: public, weights: [{100 - ones}, {ones}, 0.1]}}
mechanism: {{kind: auto}}
"""
    randomizer = compile_text(text).randomizer
    assert np.linalg.matrix_rank(matrix(randomizer, range(3))) == 3

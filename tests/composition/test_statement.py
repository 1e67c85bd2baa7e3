"""What a certificate says of many labels of one user, and what ``verify`` makes of it."""

import copy
from decimal import Decimal
from fractions import Fraction

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.graph import write_model

from labeldp_compile import compile_spec
from labeldp_compile import composition as accounting
from labeldp_compile.build.assembly import assemble
from labeldp_compile.composition import compose
from labeldp_compile.errors import InputError
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.fixtures.compiled import INTEGER_SPEC

LABELS = 40
SPEC = INTEGER_SPEC.replace("{epsilon: 1.0}", f"{{epsilon: 1.0, labels_per_user: {LABELS}}}")


@pytest.fixture(scope="module")
def artifact():
    spec = parse_spec(SPEC)
    prior = estimate_prior(spec, None)
    return assemble(spec, prior, "0" * 64, many_labels=True)


def failed_step(artifact, change):
    """The step at which a well-formed file with another certificate fails."""
    certificate = copy.deepcopy(artifact.certificate.to_json())
    change(certificate["composition"], certificate)
    domain = parse_spec(SPEC).domain
    report = check_bytes(write_model(domain, artifact.randomizer, certificate))
    return next((check.name for check in report.checks if not check.ok), None)


def test_the_certificate_states_both_figures(artifact):
    stated = artifact.certificate.to_json()["composition"]
    assert Fraction(stated["epsilon_pure"]) == LABELS and stated["epsilon_prior"] == "0"
    at = {row["delta"]: Decimal(row["epsilon"]) for row in stated["epsilon_at_delta"]}
    assert list(at) == ["1e-6", "1e-7", "1e-8", "1e-9", "1e-10"]
    assert sorted(at.values()) == list(at.values()) and at["1e-6"] < LABELS
    composition = compose([[artifact.randomizer]], [LABELS])
    assert composition.exact.delta(Fraction(at["1e-8"])) <= Fraction("1e-8")
    report = check_bytes(artifact.model)
    assert report.ok and "composition" in [check.name for check in report.checks]
    assert "composition.epsilon_at_delta" in report.to_json()["proved"]
    assert "composition.labels_per_user" in report.to_json()["declared"]


def restate(row, epsilon):
    def change(composition, _):
        composition["epsilon_at_delta"][row]["epsilon"] = epsilon

    return change


def set_field(key, value):
    return lambda composition, _: composition.update({key: value})


@pytest.mark.parametrize(
    "change",
    [
        restate(0, "13"),
        restate(4, "1e-3"),
        restate(2, "-1"),
        restate(2, "x"),
        set_field("labels_per_user", LABELS - 1),
        set_field("labels_per_user", 10**9),
        set_field("epsilon_pure", "39"),
        set_field("epsilon_prior", "1"),
        set_field("pair", "randomized response"),
        lambda composition, _: composition["epsilon_at_delta"].pop(),
        lambda composition, _: composition["epsilon_at_delta"][0].update(delta="1e-5"),
    ],
)
def test_a_better_story_than_the_integers_tell_fails(artifact, change):
    assert failed_step(artifact, change) == "composition"


def test_the_spec_and_the_certificate_must_agree_on_the_labels_of_a_user(artifact):
    for text in (INTEGER_SPEC, SPEC.replace("user: 40", "user: 41")):
        found = spec_disagreements(text.encode(), artifact.certificate)
        assert any(line.startswith("privacy.labels_per_user") for line in found)
    found = spec_disagreements(SPEC.encode(), artifact.certificate)
    assert not any("labels_per_user" in line for line in found)


def test_without_dp_accounting_nothing_is_spent(tmp_path, without):
    without("dp_accounting")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    with pytest.raises(InputError, match="needs dp-accounting: pip install"):
        compile_spec(path)


def test_an_accountant_that_is_too_good_is_not_believed(monkeypatch, artifact):
    true = compose([[artifact.randomizer]], [LABELS]).epsilon(Decimal("1e-6"))
    said = true - Decimal("0.01")
    monkeypatch.setattr(accounting.Composition, "accounted", lambda self, delta: said)
    raised = compose([[artifact.randomizer]], [LABELS])
    epsilon = raised.epsilon(Decimal("1e-6"))
    assert epsilon > true - Decimal("0.01")
    assert raised.exact.delta(Fraction(epsilon)) <= Fraction("1e-6")
    said = Decimal("0.1")
    assert compose([[artifact.randomizer]], [LABELS]).epsilon(Decimal("1e-6")) is None

"""Labels of several columns: what a certificate claims of them is held against the integers."""

import copy
from fractions import Fraction

import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.any_form import column_losses
from labeldp_verify.forms import (
    CategoricalDomain,
    IntegerDomain,
    JointDomain,
    RealDomain,
    WindowRandomizer,
)
from labeldp_verify.forms.randomizers import Segment, check_form
from labeldp_verify.graph import canonical_json, tables_digest, write_model

from tests.fixtures.compiled import compile_text, joint_spec
from verifier.tests.integers import plain_counts

WEIGHTS = [3, 0, 1, 7, 2, 9, 4, 1, 1, 8, 0, 5, 6, 2, 2, 1, 3, 4, 5, 6, 7, 8, 9, 1]
PUBLIC = "{kind: public, weights: [" + ", ".join(map(str, WEIGHTS)) + "]}"


@pytest.fixture(scope="module")
def honest():
    return compile_text(joint_spec("{kind: rr_top_k, k: 7}", prior=PUBLIC))


@pytest.fixture(scope="module")
def equal():
    return compile_text(joint_spec(loss="zero_one", prior=PUBLIC))


def distance(loss, one, other):
    if loss == "zero_one":
        return Fraction(one != other)
    return abs(one - other) if loss == "absolute" else (one - other) ** 2 / 2


def test_column_losses_of_any_windows():
    """Segments that a window cuts, skips and repeats, as no mechanism makes them."""
    domain = JointDomain.of([IntegerDomain(0, 2), CategoricalDomain(("a", "b"), "a")])
    segments = [(3, 1), (2, 0), (5, 2), (1, 1), (4, 3), (2, 0)]
    randomizer = WindowRandomizer(
        5, (7, 6, 5, 8), tuple(Segment(*s) for s in segments), (0, 1, 4, 11, 6, 2), (0, 2, 3, 5)
    )
    check_form(randomizer)
    weights = [1, 2, 0, 4, 5, 6]
    for loss in ("squared", "absolute", "zero_one"):
        found = column_losses(domain, randomizer, [loss, "zero_one"], weights)
        first = sum(
            weights[row] * count * distance(loss, Fraction(number // 2), Fraction(row // 2))
            for row in range(6)
            for number, count in plain_counts(randomizer, row).items()
        )
        second = sum(
            weights[row] * count * (number % 2 != row % 2)
            for row in range(6)
            for number, count in plain_counts(randomizer, row).items()
        )
        assert found == [Fraction(first) / (18 * 32), Fraction(second, 18 * 32)]


def failed(artifact, change):
    """The step at which the file fails after a change to its certificate; None if it verifies."""
    stated = copy.deepcopy(artifact.certificate.to_json())
    change(stated)
    report = check_bytes(write_model(artifact.only.domain, artifact.randomizer, stated))
    return None if report.ok else report.checks[-1].name


def test_the_honest_files_verify(honest, equal):
    for artifact in (honest, equal):
        assert failed(artifact, lambda c: None) is None
        assert failed(artifact, lambda c: c.update(format_version="1.3")) == "certificate"
        assert artifact.certificate.label.column is None
    columns = honest.certificate.joint.columns
    assert [c.name for c in columns] == ["sold", "value", "code"]
    total = sum(Fraction(c.weight) * Fraction(c.noisy_label_loss) for c in columns)
    assert float(total) == pytest.approx(honest.certificate.utility.noisy_label_loss)
    assert [c.noisy_label_loss for c in equal.certificate.joint.columns] == [None] * 3


@pytest.mark.parametrize("number", [-1, 24, 2**62])
def test_an_output_is_a_combination_that_there_is(honest, number):
    values = list(honest.randomizer.values)
    values[-1] = number
    other = WindowRandomizer(
        honest.randomizer.word_bits,
        honest.randomizer.base,
        honest.randomizer.extra,
        honest.randomizer.offsets,
        tuple(values),
    )
    stated = honest.certificate.to_json()
    stated["digests"]["tables"] = tables_digest(honest.only.domain, other)
    report = check_bytes(write_model(honest.only.domain, other, stated))
    assert not report.ok and report.checks[-1].name == "tables"


def test_a_joint_domain_is_of_columns_that_round_to_the_nearest():
    with pytest.raises(ValueError, match="nearest"):
        JointDomain.of([RealDomain(0.0, 1.0, 3, "unbiased"), IntegerDomain(0, 1)])
    with pytest.raises(ValueError, match="2 to 8"):
        JointDomain.of([IntegerDomain(0, 1)])


def test_a_joint_domain_inside_another_is_refused_before_it_is_built(honest):
    # Whoever built it would be told that it has more than 1,000,000 labels.
    wide = {"kind": "integer", "min": 0, "max": 10**9, "out_of_domain": "clamp"}
    inner = {"kind": "joint", "columns": [wide, wide]}
    stated = honest.certificate.to_json()
    proto = onnx.load_from_string(honest.model)
    for columns in ([inner, wide], [{"kind": "joint", "columns": []}, wide], [7, wide], {}, [wide]):
        stated["label"]["domain"]["columns"] = columns
        for entry in proto.metadata_props:
            if entry.key == "labeldp.certificate":
                entry.value = canonical_json(stated)
        report = check_bytes(proto.SerializeToString(deterministic=True))
        assert not report.ok and report.checks[-1].name == "certificate"
        assert "1,000,000" not in report.checks[-1].detail
    with pytest.raises(ValueError, match="more than 1,000,000"):
        JointDomain.of([IntegerDomain(0, 10**6), IntegerDomain(0, 1)])


def test_a_bound_over_all_randomizers_has_no_amount():
    artifact = compile_text(joint_spec("{kind: rr_with_prior}", loss="zero_one", prior=PUBLIC))
    assert artifact.certificate.optimality.over == "any"
    assert failed(artifact, lambda c: None) is None
    assert failed(artifact, lambda c: c["optimality"].update(amount="1/3")) == "optimality"

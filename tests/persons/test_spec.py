"""``unit: person`` in a spec: exact parts of ε, and one clear error for what does not fit."""

from fractions import Fraction

import pytest
from labeldp_verify.claims import person_epsilon

from labeldp_compile.composition import has_accounting
from labeldp_compile.errors import SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.fixtures.compiled import compile_text
from tests.persons.made import orders, spec

PUBLIC = "{kind: public, weights: [1, 2, 3]}"


@pytest.mark.parametrize(
    ("privacy", "expected"),
    [
        (
            "epsilon: 1, unit: person, person_column: c, labels_per_person: 3, labels_per_user: 3",
            "cannot both be given",
        ),
        ("epsilon: 1, unit: person, person_column: c", "needs labels_per_person"),
        ("epsilon: 1, person_column: c", "person_column needs unit: person"),
        ("epsilon: 1, labels_per_person: 3", "labels_per_person needs unit: person"),
        ("epsilon: 1, unit: person, person_column: c, labels_per_person: 0", "labels_per_person"),
        ("epsilon: 1e-5, unit: person, person_column: c, labels_per_person: 99", "at least 0.0000"),
        (
            "epsilon: 1, unit: person, person_column: Returned, labels_per_person: 3",
            "the label cannot name the person",
        ),
    ],
)
def test_what_does_not_fit_is_one_clear_error(privacy, expected):
    text = orders(privacy=f"{{{privacy}}}")
    with pytest.raises(SpecError) as raised:
        parse_spec(text)
    assert expected in str(raised.value) and len(str(raised.value).splitlines()) == 1


def test_a_histogram_does_not_know_persons():
    prior = "{kind: private, data: x.csv, counts: n}"
    with pytest.raises(SpecError, match="does not say which labels are of one person"):
        parse_spec(spec(prior=prior))


@pytest.mark.parametrize("labels", [1, 3, 30, pytest.param(1_000, marks=pytest.mark.slow)])
def test_epsilon_is_divided_exactly(labels):
    certificate = compile_text(spec(labels, "0.7", PUBLIC)).certificate
    assert Fraction(certificate.exact.epsilon_label) == Fraction(7, 10) / labels
    person = person_epsilon(certificate)
    assert certificate.person.epsilon_total == "7/10" and person.total == Fraction(7, 10)
    assert person.bound <= Fraction(7, 10) and person.labels == labels
    assert all(epsilon < person.total for _, epsilon in person.at_delta)
    if labels >= 30 and has_accounting():  # compose proves less
        assert person.smallest is not None


def test_the_parts_of_a_split_are_those_of_a_person():
    prior = "{kind: private, data: x.parquet, rows: 9}"
    privacy = parse_spec(spec(4, 2, prior, split={"prior": 0.5, "label": 1.5})).privacy
    assert privacy.split_of_label == (Fraction(1, 8), Fraction(3, 8))
    assert privacy.per_label == Fraction(1, 2)


def test_a_file_and_its_spec_agree():
    text = spec(3, 1, PUBLIC)
    certificate = compile_text(text).certificate
    only_digest = spec_disagreements(text.encode(), certificate)
    assert len(only_digest) == 1 and "the digest differs" in only_digest[0]
    for old, new, expected in [
        ("labels_per_person: 3", "labels_per_person: 4", "privacy.labels_per_person"),
        ("person_column: customer", "person_column: buyer", "privacy.person_column"),
        ("epsilon: 1", "epsilon: 2", "privacy.epsilon: the spec says 2, the certificate 1"),
        ("unit: person", "unit: label", "privacy.unit"),
    ]:
        found = spec_disagreements(text.replace(old, new).encode(), certificate)
        assert any(line.startswith(expected) for line in found), found

"""What a certificate says of a person is re-derived from the file; every other story fails."""

import copy
from fractions import Fraction

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.graph import write_model
from labeldp_verify.limits import Limits

from tests.fixtures.compiled import compile_text
from tests.persons.made import orders, spec


@pytest.fixture(scope="module")
def artifact():
    return compile_text(spec(3, 2, "{kind: public, weights: [1, 2, 3]}"))


def failed_step(artifact, change):
    certificate = copy.deepcopy(artifact.certificate.to_json())
    change(certificate["person"], certificate)
    found = artifact.artifact
    model = write_model(found.label, found.lookup, certificate)
    return next((check.name for check in check_bytes(model).checks if not check.ok), None)


def stating(key, value):
    return lambda person, certificate: person.update({key: value})


def test_an_honest_file_verifies(artifact):
    assert failed_step(artifact, lambda person, certificate: None) is None


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (stating("labels_per_person", 2), "certificate"),  # the composition says 3
        (stating("labels_per_person", 0), "certificate"),
        (stating("labels_per_person", 10**9), "certificate"),
        (stating("labels_per_person", "3"), "certificate"),
        (stating("column", "returned"), "certificate"),
        (stating("column", ""), "certificate"),
        (stating("epsilon_label", "1"), "person"),
        (stating("epsilon_label_bound", "1"), "person"),
        (stating("epsilon_prior", "1"), "person"),
        (stating("epsilon_total", "1"), "person"),
        (stating("l1_sensitivity", 6), "person"),
        (stating("more", 1), "certificate"),
        (lambda person, certificate: certificate.pop("person"), "claims"),
    ],
)
def test_a_better_story_than_the_integers_tell_fails(artifact, change, step):
    assert failed_step(artifact, change) == step


def test_fewer_labels_without_a_composition_are_another_claim(artifact):
    def fewer(person, certificate):
        certificate.pop("composition")
        person["labels_per_person"] = 2

    assert failed_step(artifact, fewer) in ("certificate", "person")


@pytest.mark.parametrize(
    ("most", "fits"), [("2", True), ("1.999999999999", False), ("0.7", False), ("3", True)]
)
def test_a_limit_for_a_person(artifact, most, fits):
    limits = Limits(max_epsilon_per_person=Fraction(most))
    exceeded = limits.exceeded(artifact.certificate, artifact.artifact)
    assert bool(exceeded) != fits


def test_a_file_that_says_nothing_of_a_person_is_not_within_such_a_limit():
    found = compile_text(orders())
    limits = Limits(max_epsilon_per_person=Fraction(60))
    (line,) = limits.exceeded(found.certificate, found.artifact)
    assert "does not say how many labels a person has" in line

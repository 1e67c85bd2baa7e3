"""Labels of several columns: the running artifact answers what the decoded integers demand."""

from functools import cache

import numpy as np
import pytest
from labeldp_runtime import Key, Randomizer
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_certificate, read_domain, read_form, read_model, read_sets

from runtime.tests.helpers import plain_words
from runtime.tests.joint_files import NAMES, ODD, combinations, everything, model, number

KEY = Key(bytes(range(32)))
EACH = pytest.mark.parametrize("name", NAMES)


def lists(private):
    """Private columns, or numbers of sets, as lists."""
    if not isinstance(private, dict):
        return np.asarray(private).tolist()
    return [np.asarray(column).tolist() for column in private.values()]


@cache
def integers(name):
    """The domain of a file, and the form that decodes it; the file verifies."""
    check_bytes(model(name)).require()
    proto = read_model(model(name))
    certificate = read_certificate(proto)
    domain = read_domain(certificate.label.domain)
    sets = read_sets(certificate.sets, domain.size)
    return domain, read_form(certificate.form, proto, model(name), domain, sets=sets)


def demanded(name, numbers, words):
    """What the integers demand for combinations [n] and words [n]: columns, or numbers of sets."""
    domain, form = integers(name)
    outputs = form.outputs_of(np.asarray(numbers), np.asarray(words, np.uint64)[:, None])
    if name == "sets":
        return outputs.tolist()
    rows = [domain.combination(number) for number in outputs.tolist()]
    return [list(column) for column in zip(*rows, strict=True)]


@EACH
def test_the_runtimes_tests_count_combinations_as_the_verifier_does(name):
    domain, _ = integers(name)
    assert combinations(name) == [domain.combination(i) for i in range(domain.size)]


@pytest.mark.parametrize("name", ODD)
def test_labels_outside_get_what_the_integers_demand(name):
    labels, places = ODD[name]
    numbers = [number(name, each) for each in places]
    randomizer, generator = Randomizer(model(name)), np.random.default_rng(2)
    for _ in range(200):
        words = generator.integers(0, 2**64, len(numbers), np.uint64)
        assert lists(randomizer.apply_words(labels, words)) == demanded(name, numbers, words)


@EACH
def test_the_words_of_a_key_are_those_of_the_number_of_the_combination(name):
    domain, _ = integers(name)
    randomizer = Randomizer(model(name), key=KEY, context="pair")
    labels = everything(name)
    digest = randomizer.certificate["digests"]["tables"]
    ids = [f"row {i}" for i in range(domain.size)]
    words = [
        plain_words(KEY.secret, "pair", digest, 3, text, i, 1)[0] for i, text in enumerate(ids)
    ]
    first = randomizer(labels, ids=ids, version=3)
    assert lists(first) == demanded(name, np.arange(domain.size), words)
    turn = np.random.default_rng(0).permutation(domain.size)
    turned = {n: [values[i] for i in turn] for n, values in labels.items()}
    again = lists(randomizer(turned, ids=[ids[i] for i in turn], version=3))
    if name == "sets":
        assert again == [lists(first)[i] for i in turn]
    else:
        assert again == [[column[i] for i in turn] for column in lists(first)]

"""A few of the cases of benchmarks/fuzz.py, and that what they look for would be found.

The same cases and the same noise in every run: benchmarks/fuzz.py is for new ones.
"""

from random import Random

import numpy as np
import pytest
from labeldp_runtime import inputs

from tests.fuzz import guard
from tests.fuzz.guard import FoundError
from tests.fuzz.run_pairs import try_file_pair, try_pair
from tests.fuzz.run_specs import try_spec, write_tables
from tests.fuzz.spec_cases import BASES, spec_file


@pytest.fixture(autouse=True)
def patient(limit):
    """What takes 5 seconds of a slow processor is no hang yet."""
    limit(guard, "SECONDS", 60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    write_tables(folder)
    return folder


@pytest.mark.parametrize("number", range(60))
def test_specs(folder, number):
    try_spec(spec_file(Random(number)), folder)


@pytest.mark.parametrize("number", range(20))
def test_pairs_that_differ_in_one_label(number):
    for part in range(25):
        try_pair(Random(25 * number + part))


@pytest.mark.parametrize("number", range(24))
def test_pairs_of_files_that_differ_in_one_label(folder, number):
    try_file_pair(Random(number), folder)


def test_a_label_that_changes_another_row_is_found(folder, monkeypatch):
    def of_all_labels(values, element_type, missing, **more):
        array, like = read_labels(values, element_type, missing, **more)
        return np.sort(array), like

    read_labels = inputs.read_labels
    monkeypatch.setattr(inputs, "read_labels", of_all_labels)
    found = 0
    for number in range(40):
        try:
            try_pair(Random(number))
        except FoundError as error:
            found += 1
            assert "another row differs" in str(error)
    assert found > 5


def test_unaltered_specs_are_planned_and_verify(folder):
    public = [text for text in BASES if "kind: public" in text]
    assert {try_spec(text.encode(), folder) for text in public[:3]} == {"verified"}

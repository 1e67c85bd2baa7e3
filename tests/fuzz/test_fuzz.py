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


@pytest.fixture(autouse=True)
def patient(limit):
    """What takes 5 seconds of a slow processor is no hang yet."""
    limit(guard, "SECONDS", 60)


@pytest.mark.parametrize("number", range(20))
def test_pairs_that_differ_in_one_label(number):
    for part in range(25):
        try_pair(Random(25 * number + part))


@pytest.mark.parametrize("number", range(24))
def test_pairs_of_files_that_differ_in_one_label(tmp_path, number):
    try_file_pair(Random(number), tmp_path)


def test_a_label_that_changes_another_row_is_found(monkeypatch):
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

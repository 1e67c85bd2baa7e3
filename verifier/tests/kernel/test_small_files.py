"""The kernel's bound of small files is no less than their ratio, and not far from it."""

import random

import pytest
from labeldp_verify import kernel

from verifier.tests.kernel.enumerated import opened, real_ratio
from verifier.tests.kernel.small_files import small_files

FILES = dict(small_files())


@pytest.mark.parametrize("name", list(FILES)[::3])
def test_small_files_keep_to_their_bound(name):
    integers = kernel.integers_of(FILES[name])
    bits = max(table.bits for table in integers.tables)
    words = 2 if isinstance(integers.tables[0], kernel.Noise) else 1
    real = real_ratio(opened(FILES[name]), bits, words, random.Random(name))
    assert 1 < real <= integers.ratio()

"""Private labels that are sets: the labels in them, damaged files, keys, columns of every kind."""

import numpy as np
import pytest
from labeldp_runtime import DamagedArtifactError, Randomizer

from runtime.tests.helpers import file, recertified
from runtime.tests.set_files import (
    CODES,
    DAMAGE,
    LOOK_ALIKES,
    NAMES,
    RANGES,
    model,
    sizes_and_outputs,
)

TEXT = "all subsets of text"


@pytest.mark.parametrize("name", NAMES)
def test_members_are_the_bits_of_the_certificate(name):
    randomizer = Randomizer(model(name))
    k, outputs = sizes_and_outputs(randomizer.certificate)
    blocks = randomizer.certificate["sets"]["blocks"]
    assert randomizer.membership.shape == (len(outputs), k) and len(randomizer.classes) == k
    for i, output in enumerate(outputs):
        members = randomizer.members(output)
        if blocks is None:
            assert members == [output] and type(members[0]) is type(randomizer.classes[0])
        else:
            held = [int(blocks[i], 16) >> j & 1 for j in range(k)]
            assert members == [y for y, bit in zip(randomizer.classes, held, strict=True) if bit]
        assert randomizer.membership[i].tolist() == [y in members for y in randomizer.classes]


def test_exact_labels_and_what_is_no_private_label():
    text, codes = Randomizer(model(TEXT)), Randomizer(model("codes"))
    assert text.classes == LOOK_ALIKES and codes.classes == CODES
    for output in (-1, 2**64, "1", 1.0, None, np.float64(1), [1]):
        with pytest.raises(ValueError, match="sets"):
            text.members(output)
    assert text.members(np.int64(1)) == text.members(1)
    large = Randomizer(model("large ε, codes"))
    for output in (2**63, "3", 3.5, None):
        with pytest.raises(ValueError, match="not a private label of the artifact"):
            large.members(output)
    with pytest.raises(TypeError, match="not sets of labels"):
        Randomizer(file("integers")).members(0)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_sets_are_refused(damage):
    damaged = recertified(model("codes"), DAMAGE[damage])
    with pytest.raises(DamagedArtifactError, match="certificate is damaged"):
        Randomizer(damaged)


def test_a_huge_domain_in_a_damaged_file_is_no_work():
    for change in RANGES.values():
        with pytest.raises(DamagedArtifactError):
            Randomizer(recertified(model("integers"), change))

"""Private labels that are sets: the labels in them, damaged files, keys, columns of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import DamagedArtifactError, Key, Randomizer

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


@pytest.mark.parametrize("name", [TEXT, "codes", "integers"])
def test_a_key_gives_the_same_set_for_the_same_id_and_label(name):
    keyed = Randomizer(model(name), key=Key(bytes(32)), context="y")
    labels = [y for y in keyed.classes for _ in range(50)]
    ids = [f"row {i}" for i in range(len(labels))]
    first = keyed(labels, ids=ids)
    order = np.random.default_rng(0).permutation(len(ids))
    again = keyed([labels[i] for i in order], ids=[ids[i] for i in order])
    assert (again == first[order]).all()
    assert (keyed(labels, ids=ids, version=1) != first).mean() > 0.1
    other = keyed(labels[50:] + labels[:50], ids=ids)  # of other labels other sets are drawn
    assert len(set(first.tolist())) > 4 and (other != first).mean() > 0.1
    unlisted = [None, "unlisted"] if keyed.label_type == "string" else [None, None]
    rule = keyed.certificate["label"]["domain"]["out_of_domain"]
    default = keyed.classes[0] if rule == "clamp" else rule["default"]
    for missing in unlisted:
        same = keyed([default] * 50, ids=ids[:50])
        assert (keyed([missing] * 50, ids=ids[:50]) == same).all()


COLUMNS = {
    "list": lambda values: values,
    "numpy": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "pandas text": lambda values: pd.Series(values, dtype="string", name="y"),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas Arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda values: pl.Series("y", values),
    "polars category": lambda values: pl.Series("y", values, dtype=pl.Categorical),
    "pyarrow": pa.array,
    "pyarrow chunks": lambda values: pa.chunked_array([values[:3], values[3:]]),
    "pyarrow dictionary": lambda values: pa.array(values).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_text_become_columns_of_numbers(kind):
    keyed = Randomizer(model(TEXT), key=Key(bytes(32)), context="y")
    values = [*LOOK_ALIKES, None, "other"] * 3
    ids = list(range(len(values)))
    private = keyed(COLUMNS[kind](values), ids=ids)
    assert np.asarray(private).dtype == np.int64
    numbers = private.to_pylist() if kind.startswith("pyarrow") else list(private)
    assert numbers == keyed(values, ids=ids).tolist()

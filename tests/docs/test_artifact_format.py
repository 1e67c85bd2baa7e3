"""docs/artifact-format.md is enough for another reader: tests/docs/reader.py is one."""

import dataclasses
import re
from fractions import Fraction
from pathlib import Path
from typing import get_type_hints

import onnx
import pytest
from labeldp_verify.analysis.probabilities import row, value
from labeldp_verify.claims import Optimality, PrivatePriorClaims, RadiusOptimality
from labeldp_verify.claims.claim import all_claims
from labeldp_verify.claims.label import JointColumnClaims
from labeldp_verify.claims.records import ExactTableClaims, TableClaims, WholeFile
from labeldp_verify.graph import BucketGrid
from labeldp_verify.opening import open_artifact

from tests.docs.reader import Artifact
from tests.fixtures.compiled import compile_text, joint_spec
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped, plain_counts, replaced, some_windows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "artifact-format.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "tests" / "golden/plain").glob("*.onnx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_reader_decodes_what_the_library_does(path):
    read, decoded = Artifact(path.read_bytes()), open_artifact(path).table(0)
    r, k = decoded.randomizer, decoded.domain.size
    assert read.digest() == read.certificate["digests"]["tables"]
    assert [len(weights) for weights in read.weights] == [r.outputs] * k
    step = max(k // 20, 1)
    for label in range(0, k, step):
        assert read.weights[label] == row(r, label)
        assert sum(read.weights[label]) == read.total
    assert read.values == [value(r, i) for i in range(r.outputs)]
    if read.certificate["form"] != "window":
        columns = list(zip(*read.weights, strict=True))
        ratio = max(Fraction(max(column), min(column)) for column in columns)
        assert str(ratio) == read.certificate["exact"]["realised_ratio"]


@pytest.mark.parametrize("values", [(7, -2, 2**40), (0, 1, 2), ("a", "", "ü")])
@pytest.mark.parametrize("grid", [None, BucketGrid(0, 0), BucketGrid(2, 5)])
@pytest.mark.parametrize("sizes", [(10, 10, 10, 10), (10, 13, 11, 12)])
def test_the_reader_decodes_tables_by_group(values, grid, sizes):
    windows = tuple(some_windows(bits)[i] for i, bits in enumerate(sizes))
    randomizer = replaced(grouped(values), windows=windows)
    read = Artifact(file_of(DOMAIN, randomizer, grid=grid))
    assert read.digest() == read.certificate["digests"]["tables"]
    assert read.certificate["groups"]["columns"][0]["values"] == list(values)
    for weights, outputs, window in zip(read.weights, read.values, randomizer.windows, strict=True):
        assert tuple(outputs) == window.values
        for label, counts in enumerate(weights):
            expected = plain_counts(window, label)
            assert dict(zip(outputs, counts, strict=True)) == expected


def test_the_reader_decodes_combinations():
    artifact = compile_text(joint_spec("{kind: rr_top_k, k: 7}", 3))
    read = Artifact(artifact.model)
    assert read.digest() == read.certificate["digests"]["tables"]
    assert tuple(read.values) == artifact.randomizer.values
    for label in range(24):
        assert read.weights[label] == row(artifact.randomizer, label)


def test_every_constant_field_and_metadata_key_is_on_the_page():
    named = set(re.findall(r"`([a-z_0-9.]+)`", PAGE))
    assert FILES
    for path in FILES:
        model = onnx.load(path)
        label_part = {"label_max", "label_default", "half", "rounding_shift", "rounding_unit"}
        constants = {t.name for t in model.graph.initializer} - label_part - {"words_per_label"}
        assert constants <= named, constants - named
        assert {entry.key for entry in model.metadata_props} <= named
    model = onnx.load_from_string(file_of(DOMAIN, grouped((0, 1, 2)), grid=BucketGrid(2, 5)))
    constants = {t.name for t in model.graph.initializer} - label_part
    assert constants | {"word_shifts"} <= named, constants - named
    model = onnx.load_from_string(compile_text(joint_spec(real=True)).model)
    constants = {re.sub(r"_label_\d", "_label_1", t.name) for t in model.graph.initializer}
    own = {name for name in constants if not name.startswith("label_")} - {"words_per_label"}
    assert own - {"private_label_1_size"} <= named, own - named
    records = [claim.record for claim in all_claims()]
    for kind in (*records, TableClaims, ExactTableClaims, JointColumnClaims):
        for name in get_type_hints(kind):
            assert any(part.endswith(name) for part in named), name
    for section, kind in get_type_hints(WholeFile).items():
        inner = get_type_hints(kind) if dataclasses.is_dataclass(kind) else [section]
        for name in inner:
            assert name in named or f"{section}.{name}" in named, (section, name)
    assert {*get_type_hints(Optimality), *get_type_hints(PrivatePriorClaims)} <= named
    assert {*get_type_hints(RadiusOptimality)} <= named

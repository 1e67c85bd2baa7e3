"""docs/artifact-format.md names every constant, field and key."""

import dataclasses
import re
from pathlib import Path
from typing import get_type_hints

import onnx
from labeldp_verify.claims import Optimality, PrivatePriorClaims, RadiusOptimality
from labeldp_verify.claims.claim import all_claims
from labeldp_verify.claims.label import JointColumnClaims
from labeldp_verify.claims.records import ExactTableClaims, TableClaims, WholeFile
from labeldp_verify.graph import BucketGrid

from tests.fixtures.compiled import compile_text, joint_spec
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "artifact-format.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "tests" / "golden/plain").glob("*.onnx"))


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

"""docs/engines.md: what it imports and names exists."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from labeldp_compile.spec import parse_spec

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
SPEC = """
version: 1
name: visits
label: {column: visits, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 1.0}
mechanism: {kind: rr_on_bins}
"""


def test_the_imports_work_and_the_options_exist():
    pytest.importorskip("pyspark")
    imports = re.findall(r"^from (labeldp_runtime[.\w]*) import (.+)$", PAGE, re.M)
    assert len(imports) == 5
    for module, names in imports:
        for name in names.split("#")[0].split(","):
            assert hasattr(importlib.import_module(module), name.strip())
    spark = inspect.signature(importlib.import_module("labeldp_runtime.spark").randomize)
    for option in ("id_column", "key", "add_as", "require", "check_duplicates", "context"):
        assert option in spark.parameters and option in PAGE


def test_the_prior_is_a_valid_one():
    (prior,) = re.findall(r"^prior: .*$", PAGE, re.M)
    assert parse_spec(SPEC + prior + "\n").prior.counts == "n"

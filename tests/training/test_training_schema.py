"""The JSON Schema of training configs that is published is current."""

from pathlib import Path

import pytest

pytest.importorskip("labeldp_trainer")

from labeldp_trainer.config import json_schema

ROOT = Path(__file__).parents[2]
FILE = "labeldp-train.schema.json"


def test_the_committed_schema_is_current():
    committed = (ROOT / "specs" / FILE).read_text(encoding="utf-8")
    assert committed == json_schema(), f"run: labeldp schema --training > specs/{FILE}"


def test_the_docs_name_the_line_for_editors():
    line = f"# yaml-language-server: $schema={FILE}"
    assert line in (ROOT / "docs" / "training.md").read_text(encoding="utf-8")

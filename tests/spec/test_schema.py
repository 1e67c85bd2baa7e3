"""The published JSON Schema is current, and the example specs use it and compile."""

from pathlib import Path

import pytest

from labeldp_compile.spec import json_schema, load_spec

SCHEMA_FILE = "labeldp-spec.schema.json"
SPECS = Path(__file__).parents[2] / "specs"
EXAMPLES = sorted(SPECS.glob("*.yaml"))


def test_the_committed_schema_is_current():
    committed = (SPECS / SCHEMA_FILE).read_text(encoding="utf-8")
    assert committed == json_schema(), "run: labeldp schema > specs/labeldp-spec.schema.json"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_names_the_schema_in_its_first_line(path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA_FILE}"
    assert load_spec(path)[0].name == path.stem

"""The published JSON Schema of training configs says what the trainer takes."""

import json
import re

import pytest
import yaml
from click.testing import CliRunner
from labeldp_trainer.config import json_schema
from labeldp_trainer.config.model import Config

from labeldp_compile.cli import main
from trainer.tests.label_method_helpers import CONFIG as LABEL_CONFIG
from trainer.tests.trainer_helpers import CLASSES, CONFIG

SCHEMA = json.loads(json_schema())
KEYWORDS = {
    *("$ref", "additionalProperties", "anyOf", "const", "default", "definitions", "description"),
    *("enum", "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maximum", "minItems"),
    *("minimum", "oneOf", "pattern", "properties", "required", "title", "type", "$schema"),
}
TYPES = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": int | float,
    "object": dict,
    "string": str,
}


def fits(value, node):
    """Whether a value is what a schema of these keywords asks for."""
    if "$ref" in node:
        return fits(value, SCHEMA["definitions"][node["$ref"].rpartition("/")[2]])
    kind = node.get("type")
    return (
        all(any(fits(value, p) for p in node[key]) for key in ("anyOf", "oneOf") if key in node)
        and (kind is None or isinstance(value, TYPES[kind]))
        and value == node.get("const", value)
        and value in node.get("enum", [value])
        and (not isinstance(value, str) or re.search(node.get("pattern", ""), value) is not None)
        and (not isinstance(value, int | float) or inside(value, node))
        and (not isinstance(value, dict) or has_keys(value, node))
    )


def inside(value, node):
    """Whether a number is within the limits."""
    above = value > node["exclusiveMinimum"] if "exclusiveMinimum" in node else True
    below = value < node["exclusiveMaximum"] if "exclusiveMaximum" in node else True
    return above and below and node.get("minimum", value) <= value <= node.get("maximum", value)


def has_keys(value, node):
    """Whether a mapping has the keys that it needs, and others only if they may be."""
    known = node.get("properties", {})
    return (
        all(fits(value[key], known[key]) for key in value.keys() & known.keys())
        and set(node.get("required", ())) <= set(value)
        and (node.get("additionalProperties", True) is not False or value.keys() <= known.keys())
    )


def keywords(node):
    """The words of a schema that are not names of keys."""
    for key, value in node.items():
        yield key
        if key in ("properties", "definitions"):
            for part in value.values():
                yield from keywords(part)
        elif isinstance(value, dict) and key != "default":
            yield from keywords(value)
        elif isinstance(value, list) and key not in ("default", "enum", "required"):
            for part in value:
                yield from keywords(part)


def test_it_is_draft_7_and_has_every_key():
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert set(keywords(SCHEMA)) <= KEYWORDS
    assert set(SCHEMA["properties"]) == set(Config.model_fields)
    assert SCHEMA["additionalProperties"] is False
    kinds = {part["$ref"].rpartition("/")[2] for part in SCHEMA["properties"]["method"]["oneOf"]}
    assert {"NoMethod", "Privatized", "Alibi", "DpSgd", "LabelDpPro"} <= kinds


@pytest.mark.parametrize("text", [CONFIG, CLASSES, LABEL_CONFIG])
def test_configs_fit_it(text):
    config = yaml.safe_load(text)
    assert fits(config, SCHEMA)
    for wrong in ({"lss": "squared"}, {"loss": "square"}, {"version": 2}, {"name": "a b"}):
        assert not fits(config | wrong, SCHEMA)
    assert not fits(config | {"method": {"kind": "alibi", "epsilon": 61}}, SCHEMA)
    assert not fits(config | {"method": {"kind": "dp_sgd", "epsilon": 0, "delta": 0.1}}, SCHEMA)
    assert fits(config | {"method": {"kind": "dp_sgd", "epsilon": 1, "delta": 0.1}}, SCHEMA)


def test_what_has_a_default_may_be_left_out():
    short = {"version": 1, "name": "a", "data": {"kind": "table", "train": "t", "label": "y"}}
    method = {"epsilon": 1, "delta": 1e-5}
    assert fits(short | {"method": method}, SCHEMA)
    assert not fits(short | {"method": {"epsilon": 1}}, SCHEMA)
    assert not fits(short, SCHEMA)


def test_the_command(monkeypatch):
    assert CliRunner().invoke(main, ["schema", "--training"]).stdout == json_schema()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    missing = CliRunner().invoke(main, ["schema", "--training"])
    assert missing.exit_code == 2
    assert "schema --training needs labeldp-trainer" in missing.stderr
    assert "labeldp spec" in CliRunner().invoke(main, ["schema"]).stdout

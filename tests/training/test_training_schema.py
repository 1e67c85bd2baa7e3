"""The JSON Schema of training configs that is published is current, and says what is taken."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

pytest.importorskip("labeldp_trainer")

from labeldp_trainer.config import json_schema

from trainer.tests.trainer_helpers import CONFIG

ROOT = Path(__file__).parents[2]
FILE = "labeldp-train.schema.json"


def test_the_committed_schema_is_current_and_the_docs_name_it():
    committed = (ROOT / "specs" / FILE).read_text(encoding="utf-8")
    assert committed == json_schema(), f"run: labeldp schema --training > specs/{FILE}"
    line = f"# yaml-language-server: $schema={FILE}"
    assert line in (ROOT / "docs" / "training-config.md").read_text(encoding="utf-8")


def test_configs_fit_it_and_wrong_ones_do_not():
    schema = jsonschema.Draft7Validator(json.loads(json_schema()))
    config = yaml.safe_load(CONFIG)
    short = {key: config[key] for key in ("version", "name", "data")}
    short["method"] = {"epsilon": 1, "delta": 1e-5}
    for right in (
        config,
        short,
        config | {"method": {"kind": "dp_sgd", "epsilon": 1, "delta": 0.1}},
    ):
        schema.validate(right)
    methods = [{"kind": "alibi", "epsilon": 61}, {"kind": "dp_sgd", "epsilon": 0, "delta": 0.1}]
    wrong = [{"lss": "squared"}, {"loss": "square"}, {"version": 2}, {"name": "a b"}]
    for change in [*wrong, *({"method": method} for method in methods)]:
        assert not schema.is_valid(config | change), change

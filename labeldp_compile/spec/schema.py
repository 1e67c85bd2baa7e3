"""The JSON Schema of the spec, in draft 7, which the YAML servers of editors read."""

from __future__ import annotations

import json
from typing import Any

from labeldp_compile.spec.model import Spec

SCHEMA_FILE = "labeldp-spec.schema.json"


def json_schema() -> str:
    """The schema as indented JSON, with a final newline; the same for the same models."""
    schema = _draft7(Spec.model_json_schema())
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "labeldp spec",
        **{key: value for key, value in schema.items() if key != "title"},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _draft7(node: Any) -> Any:
    """Rename ``$defs``, and drop the OpenAPI keyword ``discriminator``."""
    if isinstance(node, dict):
        return {
            ("definitions" if key == "$defs" else key): _draft7(value)
            for key, value in node.items()
            if key != "discriminator"
        }
    if isinstance(node, list):
        return [_draft7(item) for item in node]
    return node.replace("#/$defs/", "#/definitions/") if isinstance(node, str) else node

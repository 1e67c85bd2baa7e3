"""The spec: what the user asks for. It is read strictly, and errors explain what is wrong."""

from labeldp_compile.spec.load import json_schema, load_spec, parse_spec
from labeldp_compile.spec.model import Spec

__all__ = ["Spec", "json_schema", "load_spec", "parse_spec"]

"""``labeldp schema``: the JSON Schema of the spec, for editors."""

from __future__ import annotations

import click

from labeldp_compile.spec import json_schema


@click.command("schema", epilog="\b\nExample:\n  labeldp schema > labeldp-spec.schema.json")
def schema_command() -> None:
    """Print the JSON Schema (draft 7) of the spec."""
    click.echo(json_schema(), nl=False)

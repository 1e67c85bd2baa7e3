"""``labeldp schema``: the JSON Schemas of the spec and of the training config, for editors."""

import click

from labeldp_compile.cli.command import command


@command(
    "schema",
    "labeldp schema > labeldp-spec.schema.json",
    "labeldp schema --training > labeldp-train.schema.json",
    "labeldp schema --policy > labeldp-policy.schema.json",
)
@click.option("--training", is_flag=True, help="For training configs (needs labeldp-trainer).")
@click.option("--policy", is_flag=True, help="For the policies of labeldp check.")
def schema_command(training: bool, policy: bool) -> None:
    """Print the JSON Schema (draft 7) of the spec, a training config or a policy.

    Editors with YAML support complete and check a file whose first line is
    "# yaml-language-server: $schema=FILE".
    """
    if training and policy:
        raise click.UsageError("--training and --policy are two schemas: give one")
    if training:
        from labeldp_compile.errors import trainer_module  # noqa: PLC0415

        text: str = trainer_module("config", "schema --training").json_schema()
    elif policy:
        from labeldp_compile.check import policy_schema  # noqa: PLC0415

        text = policy_schema()
    else:
        from labeldp_compile.spec import json_schema  # noqa: PLC0415

        text = json_schema()
    click.echo(text, nl=False)

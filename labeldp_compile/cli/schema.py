"""``labeldp schema``: the JSON Schemas of specs, training configs, policies and project files."""

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
@click.option("--project", is_flag=True, help="For the project file labeldp.yaml.")
def schema_command(training: bool, policy: bool, project: bool) -> None:
    """Print the JSON Schema (draft 7) of a spec, or of another file in YAML.

    Editors with YAML support complete and check a file whose first line is
    "# yaml-language-server: $schema=FILE".
    """
    if training + policy + project > 1:
        raise click.UsageError("--training, --policy and --project are three schemas: give one")
    if training:
        from labeldp_compile.errors import trainer_module  # noqa: PLC0415

        text: str = trainer_module("config", "schema --training").json_schema()
    elif policy:
        from labeldp_compile.check import policy_schema  # noqa: PLC0415

        text = policy_schema()
    elif project:
        from labeldp_compile.project import project_schema  # noqa: PLC0415

        text = project_schema()
    else:
        from labeldp_compile.spec import json_schema  # noqa: PLC0415

        text = json_schema()
    click.echo(text, nl=False)

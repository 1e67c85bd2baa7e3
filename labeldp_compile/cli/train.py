"""``labeldp train``: hands over to the package labeldp-trainer, if that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import click
from click.shell_completion import CompletionItem

from labeldp_compile.cli.errors import printable_usage_errors
from labeldp_compile.errors import InputError


@click.command(
    "train",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Train a JAX model on private labels (needs labeldp-trainer).",
)
@click.argument(
    "arguments",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=lambda ctx, parameter, start: [CompletionItem(start, type="file")],
)
def train_command(arguments: tuple[str, ...]) -> None:
    """Everything after the name belongs to the trainer, ``--help`` too."""
    # Asked for when used: JAX takes seconds to load.
    if importlib.util.find_spec("labeldp_trainer") is None:
        raise InputError(
            "train needs the package labeldp-trainer: in a clone of labeldp, pip install ./trainer"
        )
    command: click.Command = importlib.import_module("labeldp_trainer.cli").train_command
    with printable_usage_errors():
        try:
            command.main(list(arguments), prog_name="labeldp train", standalone_mode=False)
        except click.exceptions.Exit as exit_:
            sys.exit(exit_.exit_code)

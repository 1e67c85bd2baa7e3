"""The commands of the package labeldp-trainer: each is passed on to it, if it is installed."""

import importlib
import importlib.util
import sys
from types import ModuleType

import click

from labeldp_compile.cli import _COMMANDS
from labeldp_compile.cli.command import Command
from labeldp_compile.cli.options import any_file
from labeldp_compile.errors import InputError

THEIRS = ("train", "runs", "predict", "explain")


def trainer_module(name: str, asked: str) -> ModuleType:
    """A module of the trainer, for ``asked``. Raises InputError if it is not installed."""
    # Imported on use: JAX takes seconds to load.
    if importlib.util.find_spec("labeldp_trainer") is None:
        raise InputError(
            f"{asked} needs the package labeldp-trainer: in a clone of labeldp, "
            "pip install ./trainer"
        )
    return importlib.import_module(f"labeldp_trainer.{name}")


def handed_over(name: str) -> click.Command:
    """The command ``name`` of labeldp, which calls ``name_command`` of the trainer."""

    @click.command(
        name,
        cls=Command,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        short_help=_COMMANDS[name],
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=any_file)
    def command(arguments: tuple[str, ...]) -> None:
        """Everything after the name is the trainer's, including ``--help``."""
        theirs: click.Command = getattr(trainer_module("cli", name), f"{name}_command")
        try:
            theirs.main(list(arguments), prog_name=f"labeldp {name}", standalone_mode=False)
        except click.exceptions.Exit as exit_:
            sys.exit(exit_.exit_code)

    return command

"""The group of all commands; each is loaded on use."""

import difflib
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from labeldp_compile.cli import _COMMANDS, _HEADINGS
from labeldp_compile.cli.command import Command, Group, printable_usage_errors
from labeldp_compile.cli.options import any_file
from labeldp_compile.errors import trainer_module

_FOLDERS = {"serve": "labeldp_compile.serve"}
"""Commands in a folder that nothing else imports: deleting the folder deletes the command."""


THEIRS = ("train", "runs", "predict", "explain")
"""Commands of the package labeldp-trainer: each is passed on to it, if it is installed."""


class _Commands(Group):
    """Loads a command on use: ``randomize`` starts five times as fast as with all of them."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the options of the group."""
        with printable_usage_errors():
            return super().make_context(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; on a terminal, ``labeldp`` alone starts the tour."""
        if args in ([], ["init"]) and not ctx.resilient_parsing:
            from labeldp_compile.cli.demo import FOLDER, on_a_terminal  # noqa: PLC0415

            if on_a_terminal() and not Path(FOLDER).exists():
                args = ["demo"]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the options of the command, and run it."""
        with printable_usage_errors():
            return super().invoke(ctx)

    def helps(self) -> dict[str, str]:
        """The short help of each command, without loading any."""
        return {
            name: text
            for name, text in _COMMANDS.items()
            if name not in _FOLDERS or find_spec(_FOLDERS[name])
        }

    def headings(self) -> Mapping[str, Sequence[str]]:
        """The names of the commands under five headings, in the order of use."""
        there = self.helps()
        return {it: [name for name in names if name in there] for it, names in _HEADINGS.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name in THEIRS:
            return trainer_command(cmd_name)
        if cmd_name not in self.helps():
            return None
        folder = _FOLDERS.get(cmd_name)
        module = f"{folder}.command" if folder else f"labeldp_compile.cli.{cmd_name}"
        return getattr(import_module(module), f"{cmd_name}_command")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The first word's command. Raises UsageError with the nearest name if it is unknown."""
        name = args[0]
        known = self.helps()
        if name not in known and not ctx.resilient_parsing and not name.startswith("-"):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "See labeldp --help."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that start like this, and the options of the group."""
        commands = {
            name: text for name, text in self.helps().items() if name.startswith(incomplete)
        }
        return [
            *(CompletionItem(name, help=text) for name, text in commands.items()),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def trainer_command(name: str) -> click.Command:
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


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="labeldp", prog_name="labeldp")
def main() -> None:
    """A compiler for label differential privacy: from a YAML spec to a certified randomizer.

    \b
    Example:
      labeldp init visits.parquet --column visits --epsilon 1 --range 0..20
      labeldp compile visits.yaml -o build/
      labeldp verify build/visits.onnx
      labeldp randomize build/visits.onnx visits.parquet -o private.parquet
    """

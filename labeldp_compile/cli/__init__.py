"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong.
"""

from __future__ import annotations

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from labeldp_compile.cli.errors import explained, printable_usage_errors

# The short helps stand here so that a list of the commands imports none of them; a test holds them
# against the commands' own.
_COMMANDS = {
    "init": "Write a commented spec for a column of TABLE.",
    "plan": "Say what compile would do with SPEC: what it spends, solves and writes.",
    "sweep": "Compare all mechanisms for the label, loss and prior of SPEC.",
    "choose": "Find the least ε, and the mechanism, that make private labels good enough.",
    "compile": "Compile SPEC into a randomizer with a certificate.",
    "verify": "Re-derive every provable claim of an artifact from FILE alone.",
    "audit": "Randomize made-up labels, and test the outputs against what FILE certifies.",
    "randomize": "Randomize the labels of TABLE with ARTIFACT, which is verified first.",
    "estimate": "Estimate histogram, mean and quantiles of what is behind private labels.",
    "train": "Train a JAX model on private labels (needs labeldp-trainer).",
    "keygen": "Write a new random key to FILE, for labeldp randomize --key.",
    "inspect": "Show the matrix Pr[output | label] of an artifact, its outputs and its labels.",
    "report": "Show what the artifact FILE does and promises, on one page for people.",
    "compose": "Say what one user pays whose labels go through all FILEs.",
    "ledger": "Keep the budget of data sets: a private prior is paid before a label is read.",
    "schema": "Print the JSON Schema (draft 7) of the spec.",
    "completion": "Print a script that completes commands, options and files in SHELL.",
}


class _Commands(click.Group):
    """Loads a command when it is used: what ``randomize`` needs comes up five times as fast."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the options of the group."""
        with printable_usage_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the options of the command, and run it."""
        with printable_usage_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are used."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name not in self.commands:
            module = importlib.import_module(f"labeldp_compile.cli.{cmd_name}")
            self.add_command(explained(getattr(module, f"{cmd_name}_command")), cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the short helps above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, and the options of the group."""
        names = [name for name in _COMMANDS if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=_COMMANDS[name]) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


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

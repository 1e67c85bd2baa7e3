"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong.
"""

from __future__ import annotations

import importlib

import click

from labeldp_compile.cli.errors import explained

_COMMANDS = (
    "plan",
    "sweep",
    "compile",
    "verify",
    "audit",
    "randomize",
    "estimate",
    "train",
    "keygen",
    "inspect",
    "compose",
    "ledger",
    "report",
    "schema",
)


class _Commands(click.Group):
    """Loads a command when it is used: what ``randomize`` needs comes up five times as fast."""

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


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="labeldp", prog_name="labeldp")
def main() -> None:
    """A compiler for label differential privacy: from a YAML spec to a certified randomizer."""

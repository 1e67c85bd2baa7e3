"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong.
"""

from __future__ import annotations

import click

from labeldp_compile.cli.compile import compile_command
from labeldp_compile.cli.errors import explained
from labeldp_compile.cli.inspect import inspect_command
from labeldp_compile.cli.keygen import keygen_command
from labeldp_compile.cli.plan import plan_command
from labeldp_compile.cli.randomize import randomize_command
from labeldp_compile.cli.schema import schema_command
from labeldp_compile.cli.sweep import sweep_command
from labeldp_compile.cli.verify import verify_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="labeldp", prog_name="labeldp")
def main() -> None:
    """A compiler for label differential privacy: from a YAML spec to a certified randomizer."""


_COMMANDS = (
    plan_command,
    sweep_command,
    compile_command,
    verify_command,
    randomize_command,
    keygen_command,
    inspect_command,
    schema_command,
)
for _command in _COMMANDS:
    main.add_command(explained(_command))

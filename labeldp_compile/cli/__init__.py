"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong.
"""

from __future__ import annotations

import click

from labeldp_compile.cli.compile import compile_command
from labeldp_compile.cli.errors import explained
from labeldp_compile.cli.keygen import keygen_command
from labeldp_compile.cli.randomize import randomize_command
from labeldp_compile.cli.schema import schema_command
from labeldp_compile.cli.verify import verify_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="labeldp", prog_name="labeldp")
def main() -> None:
    """A compiler for label differential privacy: from a YAML spec to a certified randomizer."""


for _command in (
    compile_command,
    verify_command,
    randomize_command,
    keygen_command,
    schema_command,
):
    main.add_command(explained(_command))

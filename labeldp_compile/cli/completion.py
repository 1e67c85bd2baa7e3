"""``labeldp completion``: the script with which a shell completes labeldp's commands."""

import click
from click.shell_completion import get_completion_class

from labeldp_compile.cli.command import command

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LABELDP_COMPLETE"  # what click derives from the name of the program


@command(
    "completion",
    'eval "$(labeldp completion bash)"                  # in ~/.bashrc',
    'eval "$(labeldp completion zsh)"                   # in ~/.zshrc',
    "labeldp completion fish > ~/.config/fish/completions/labeldp.fish",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and files in SHELL."""
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root().command
    click.echo(found(root, {}, "labeldp", VARIABLE).source())

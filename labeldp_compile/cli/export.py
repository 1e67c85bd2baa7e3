"""``labeldp export``: an artifact or a trained model in another form.

Each form is a *target*, a module in the folder ``export`` of a distribution, found by its name and
loaded on use. A target declares its own arguments and options.
"""

import importlib
import importlib.util
import pkgutil
from typing import Any

import click
from click.shell_completion import CompletionItem

from labeldp_compile.cli.command import Command, example
from labeldp_compile.cli.options import any_file
from labeldp_compile.errors import trainer_module

_FOLDERS = ("labeldp_compile.export", "labeldp_trainer.export")


def target_modules() -> dict[str, str]:
    """The module of each target that is installed, by the name of the target."""
    modules = {}
    for folder in _FOLDERS:
        if importlib.util.find_spec(folder.partition(".")[0]) is None:
            continue
        spec = importlib.util.find_spec(folder)
        for module in pkgutil.iter_modules((spec and spec.submodule_search_locations) or ()):
            modules[module.name] = f"{folder}.{module.name}"
    return modules


def load_target(name: str) -> click.Command:
    """The command of a target."""
    command: click.Command = importlib.import_module(target_modules()[name]).target
    return command


class _Export(Command):
    """Hands over to the command of the target, once ``--to`` is there."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the options of the target; without one, those of ``labeldp export``."""
        name, others = _without_target(args)
        modules = target_modules()
        if name not in modules:
            return super().make_context(info_name, args, parent, **extra)
        try:
            title = f"{info_name} --to {name}"
            return load_target(name).make_context(title, others, parent, **extra)
        except click.NoSuchOption as error:
            if error.option_name == "--to":
                raise click.UsageError("--to is given more than once: give it once") from None
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The targets, then the examples."""
        with formatter.section("Targets"):
            helps = {name: load_target(name).get_short_help_str(1000) for name in target_modules()}
            formatter.write_dl([(f"--to {name}", text) for name, text in helps.items()])
        super().format_epilog(ctx, formatter)


def _without_target(args: list[str]) -> tuple[str | None, list[str]]:
    """The value of the first ``--to``, and the other words."""
    for i, word in enumerate(args[: args.index("--")] if "--" in args else args):
        if word.startswith("--to="):
            return word.removeprefix("--to="), args[:i] + args[i + 1 :]
        if word == "--to" and i + 1 < len(args):
            return args[i + 1], args[:i] + args[i + 2 :]
    return None, args


def _names(ctx: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in target_modules() if name.startswith(start)]


@click.command(
    "export",
    cls=_Export,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    options_metavar="--to TARGET",
    epilog=example(
        "labeldp export --to portable build/visits.onnx -o portable/",
        "labeldp export --to sql --help",
    ),
)
@click.option("--to", "name", metavar="TARGET", shell_complete=_names, help="The form to write.")
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="FILE -o OUTPUT [OPTIONS]",
    shell_complete=any_file,
)
def export_command(name: str | None, words: tuple[str, ...]) -> None:
    """Write an artifact for another host or tool, or a trained model as ONNX.

    FILE is an artifact, which is verified first, or the folder of a trained run. Nothing is spent.
    Each target has its own options: labeldp export --to TARGET --help.
    """
    if name == "onnx":
        trainer_module("export", "labeldp export --to onnx")
    problem = "--to is missing" if name is None else f"--to {name}: no such target"
    raise click.UsageError(f"{problem}. The targets are {', '.join(target_modules())}")

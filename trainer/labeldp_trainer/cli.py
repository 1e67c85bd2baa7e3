"""``labeldp train`` and ``python -m labeldp_trainer``."""

from __future__ import annotations

from pathlib import Path

import click

from labeldp_compile.cli.errors import explained
from labeldp_compile.cli.output import say, tell
from labeldp_trainer.config import load_config


@explained
@click.command(
    "train",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  labeldp train train.yaml -o runs/first",
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The run folder to make (default: runs/NAME, with the name of the config).",
)
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def train_command(config: Path, output: Path | None, resume: bool, quiet: bool) -> None:
    """Train the model that CONFIG describes and leave a run folder.

    The folder holds the parameters, the metrics, checkpoints, and a statement of what is private
    and what must stay secret (privacy.txt, privacy.json).
    """
    loaded = load_config(config)
    # Not before the config is right: JAX takes seconds to load.
    from labeldp_trainer.progress import epoch_progress, step_progress  # noqa: PLC0415
    from labeldp_trainer.training import train  # noqa: PLC0415

    output = output or Path("runs") / loaded.config.name
    progress = epoch_progress(loaded.config.training.epochs, quiet=quiet)
    steps = step_progress(quiet=quiet)
    result = train(loaded, output, resume=resume, progress=progress, steps=steps)
    if quiet:
        return
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value:.6g}"
        for name, value in result.metrics.items()
        if isinstance(value, int | float)
    )
    say(f"{output}: {numbers}")
    for note in result.notes:
        tell(f"note: {note}")
    say(result.statement.paragraph())

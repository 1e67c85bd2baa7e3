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
    if output is not None and not resume:
        _require_new(output)
    loaded = load_config(config)
    from labeldp_trainer.run import find_run  # noqa: PLC0415

    output = output or Path("runs") / loaded.config.name
    find_run(output, loaded.digest, resume=resume)
    # Not before config and folder are right: JAX takes seconds to load.
    from labeldp_trainer.progress import epoch_progress  # noqa: PLC0415
    from labeldp_trainer.training import train  # noqa: PLC0415

    progress = epoch_progress(loaded.config.training.epochs, quiet=quiet)
    result = train(loaded, output, resume=resume, progress=progress)
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
    say(*result.statement.text().splitlines())


def _require_new(output: Path) -> None:
    # What reads run folders takes a tenth of a second to load: not for help or a wrong config.
    from labeldp_trainer.run import require_new  # noqa: PLC0415

    require_new(output)

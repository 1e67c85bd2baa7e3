"""``python -m labeldp_trainer train.yaml``."""

from collections.abc import Callable
from typing import Any

from labeldp_verify.console.interrupts import run


def _load() -> Callable[[], Any]:
    from labeldp_trainer.cli import train_command  # noqa: PLC0415

    return lambda: train_command(prog_name="python -m labeldp_trainer")


if __name__ == "__main__":
    run("labeldp", _load)

"""``labeldp``, or ``python -m labeldp_compile.cli`` if it is not on the path."""

from collections.abc import Callable
from typing import Any

from labeldp_verify.console.interrupts import run


def command() -> None:
    """Run the command line of this process, and exit."""
    run("labeldp", _load)


def _load() -> Callable[[], Any]:
    from labeldp_compile.cli.group import main  # noqa: PLC0415

    return lambda: main(prog_name="labeldp")


if __name__ == "__main__":
    command()

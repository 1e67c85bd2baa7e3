"""``labeldp-verify FILE…`` and ``python -m labeldp_verify FILE…``."""

from collections.abc import Callable

from labeldp_verify.console.interrupts import run


def command() -> None:
    """Run the command line of this process, and exit."""
    run("labeldp-verify", _load)


def _load() -> Callable[[], None]:
    from labeldp_verify.command import main  # noqa: PLC0415

    return main


if __name__ == "__main__":
    command()

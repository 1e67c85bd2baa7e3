"""``labeldp``, and ``python -m labeldp_compile.cli`` where it is not on the path."""

import os
from collections.abc import Callable
from typing import Any

from labeldp_verify.interrupts import run


def command() -> None:
    """Run the command line of this process, and exit."""
    # Which would look for plugins in the metadata of everything that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    run("labeldp", _load)


def _load() -> Callable[[], Any]:
    from labeldp_compile.cli.group import main  # noqa: PLC0415

    return lambda: main(prog_name="labeldp")


if __name__ == "__main__":
    command()

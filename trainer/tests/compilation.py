"""How XLA compiles in tests: quickly, but for what must be compiled as it is in training."""

import mmap
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

FUSIONS = "xla_cpu_use_fusion_emitters"  # without them it compiles in a third of the time
PIECES = "xla_cpu_parallel_codegen_split_count"  # each is for a core; tests have one


@cache
def _known(flag: str) -> bool:
    """Whether this XLA has a flag: one that it does not know is its end."""
    spec = find_spec("jaxlib")
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent
    for library in () if folder is None else sorted(folder.glob("libjax_common.*")):
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as it:
            if it.find(b"\0" + flag.encode() + b"\0") >= 0:  # not in a list of old names
                return True
    return False


def quick_flags() -> str:
    """For the variable XLA_FLAGS."""
    quick = {FUSIONS: "false", PIECES: "1"}
    return " ".join(f"--{flag}={value}" for flag, value in quick.items() if _known(flag))


def with_flags(flags: str) -> str:
    """XLA_FLAGS with more flags, for the children of tests."""
    return f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()


def as_in_training() -> dict[str, bool]:
    """Options of ``jax.jit`` that undo the quick flags."""
    return {FUSIONS: True} if _known(FUSIONS) else {}

"""The second line of defence of the commands that verify: the kernel's own limits on this process.

The estimates of ``budget.py`` come first. Should one be wrong, an alarm in processor time
ends the work wherever it is, and the kernel gives no memory beyond the budget.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from labeldp_verify.budget import Budget, no_memory, too_late

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_STATUS = Path("/proc/self/status")


@contextmanager
def enforced(budget: Budget) -> Iterator[None]:
    """Inside, the process has no more than the budget; for the main thread of a command."""

    def late(number: int, frame: FrameType | None) -> None:
        raise too_late(budget)

    if resource is None:
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    _limit_memory(budget, limits)
    signal.setitimer(signal.ITIMER_PROF, 0.95 * budget.seconds)
    try:
        yield
    except MemoryError:
        raise no_memory(budget) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def _limit_memory(budget: Budget, limits: tuple[int, int]) -> None:
    """Allow private memory to grow by what the budget leaves beside that which is resident now.

    Threads of numerical libraries reserve memory that they never touch, so that a limit on all
    memory of the process would depend on the number of cores.
    """
    try:
        status = _STATUS.read_text(encoding="ascii")
    except OSError:  # not on macOS
        return
    data, resident = (
        int(re.search(rf"^{name}:\s+([0-9]+) kB$", status, re.MULTILINE)[1]) * 1024  # type: ignore[index]
        for name in ("VmData", "VmRSS")
    )
    soft = data + max(budget.bytes - resident, 0)
    if limits[1] == resource.RLIM_INFINITY or soft <= limits[1]:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, limits[1]))

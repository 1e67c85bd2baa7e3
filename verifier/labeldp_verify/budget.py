"""The budget of checking a file: time and memory, estimated before they are spent.

Files come from strangers, and verifying them takes work. Before each stage, its cost is estimated
from counts that are known by then: labels, entries of tables, digits. A file that would exceed the
budget is not checked; one sentence says so. Estimates are for a slow core and err on the high side.
A deadline in processor time is the second line of defence.

The budget is in a context variable, so that the code that does the work can ask for it. Without a
budget (when the compiler analyses its own integers) nothing is limited.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from labeldp_verify.errors import InputError

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TEXT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?),([0-9]{1,18})(kB|MB|GB|KiB|MiB|GiB|)")
_PROGRAM_BYTES = 150_000_000  # Python, numpy and onnxruntime


class TooLargeError(InputError):
    """Checking the file would exceed the budget, so it was not checked."""


@dataclass(frozen=True)
class Budget:
    """Processor time in seconds, and memory in bytes, that checking one file may take."""

    seconds: float = 20.0
    bytes: int = 2_000_000_000

    @classmethod
    def parse(cls, text: str) -> Budget:
        """SECONDS,BYTES as in ``60,8GB``; raises InputError."""
        match = _TEXT.fullmatch(text)
        if match is None or not float(match[1]) or not int(match[2]):
            raise InputError(f"--budget: expected SECONDS,BYTES, as in 60,8GB, got {text!r}")
        return cls(float(match[1]), int(match[2]) * _UNITS[match[3]])

    def __str__(self) -> str:
        """In words."""
        return f"{self.seconds:,.0f} s and {_size(self.bytes)}"


DEFAULT_BUDGET = Budget()
OWN_FILES = Budget(86_400.0, 64 * 10**9)
"""For a file that this process has just made, or that its owner is about to run on true labels."""


@dataclass
class _Account:
    """The sum of the estimates that have been charged so far."""

    budget: Budget
    began: float = field(default_factory=time.process_time)
    seconds: float = 0.0
    bytes: int = _PROGRAM_BYTES
    largest: tuple[float, str] = (0.0, "")


_account: ContextVar[_Account | None] = ContextVar("labeldp_verify_account", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Inside, ``charge`` counts against the budget."""
    token = _account.set(_Account(budget))
    try:
        yield
    except MemoryError:
        raise no_memory(budget) from None
    finally:
        _account.reset(token)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Begins the message of a refusal with the file's name."""
    try:
        yield
    except TooLargeError as error:
        text = str(error)
        raise TooLargeError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from None


def no_memory(budget: Budget) -> TooLargeError:
    """The error to raise where memory ran out."""
    return TooLargeError(
        f"not checked: it takes more memory than {_size(budget.bytes)}. To allow more, use "
        "--budget SECONDS,BYTES"
    )


def too_late(budget: Budget) -> TooLargeError:
    """The error to raise where time ran out."""
    return TooLargeError(
        f"not checked: it takes longer than {budget.seconds:,.0f} s of processor time. To allow "
        "more, use --budget SECONDS,BYTES"
    )


def charge(what: str, *, seconds: float = 0.0, bytes: float = 0.0) -> None:  # noqa: A002
    """Charge the cost of the next piece of work; raises TooLargeError if it is too much.

    ``what`` says what is large, as in "100,000 labels". The seconds are those of the whole piece,
    the bytes what it keeps.
    """
    account = _account.get()
    if account is None:
        return
    account.seconds += seconds
    account.bytes += int(bytes)
    budget = account.budget
    share = max(seconds / budget.seconds, bytes / budget.bytes)
    account.largest = max(account.largest, (share, what))
    if account.seconds > budget.seconds or account.bytes > budget.bytes:
        raise TooLargeError(
            f"not checked: verifying {account.largest[1]} would take at least "
            f"{account.seconds:,.0f} s and {_size(account.bytes)}; the budget is {budget}. "
            "To allow more, use --budget SECONDS,BYTES"
        )
    check_deadline()


def check_deadline() -> None:
    """Raise TooLargeError if the budget's seconds have passed, even if the estimates were lower."""
    account = _account.get()
    if account is not None and time.process_time() - account.began > account.budget.seconds:
        raise too_late(account.budget)


def affordable(seconds_each: float, bytes_each: float) -> int:
    """How many items of this cost fit in the rest of the budget."""
    account = _account.get()
    if account is None:
        return 2**62
    rest = account.budget.seconds - account.seconds, account.budget.bytes - account.bytes
    return max(0, int(min(rest[0] / seconds_each, rest[1] / bytes_each)))


def _size(count: float) -> str:
    return f"{count / 1e9:,.2g} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


# The second line of defence of the commands that verify: the operating system's limits on this
# process.
#
# The estimates above come first. If one is too low, an alarm in processor time ends the work, and
# the system gives no memory beyond the budget.


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
    """Allow private memory to grow by what the budget leaves beside the program itself.

    A process that holds more already, for other work, may grow by as much as a fresh one.
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
    soft = data + max(budget.bytes - min(resident, _PROGRAM_BYTES), 0)
    if limits[1] == resource.RLIM_INFINITY or soft <= limits[1]:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, limits[1]))

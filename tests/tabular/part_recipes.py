"""What the processes of a test randomize with; they import this."""

import os
import signal
import threading
from pathlib import Path


def hold(fifo):
    """Say that this process is there, and stay; the pipe is open as long as it lives."""
    os.write(os.open(fifo, os.O_WRONLY), b"x")
    threading.Event().wait()


class HeldWhenRead:
    """Stays in the process that unpickles it, before that has begun with a task."""

    def __init__(self, fifo):
        self.fifo = fifo

    def __reduce__(self):
        return hold, (self.fifo,)

    def __call__(self, *arguments):
        raise AssertionError("in a process that did not unpickle it")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def by_label(folder):
    """Adds 1, and leaves the number of its process; a label 5 is the end of it."""

    def randomize(labels, **ids):
        Path(folder, str(os.getpid())).touch()
        if 5 in labels:
            die()
        return labels + 1

    return randomize


def broken():
    def randomize(labels, **ids):
        raise ZeroDivisionError

    return randomize

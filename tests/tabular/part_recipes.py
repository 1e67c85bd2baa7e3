"""What the processes of a test randomize with; they import this."""

import os
import signal
import threading
from pathlib import Path


def hold(fifo):
    """Say that this process is there, and stay; the pipe is open as long as it lives."""
    os.write(os.open(fifo, os.O_WRONLY), b"x")
    threading.Event().wait()


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

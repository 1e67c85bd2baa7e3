"""What a test puts in the place of the work that child processes share; they import this."""

import os
import threading


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

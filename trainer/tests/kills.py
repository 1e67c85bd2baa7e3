"""Training processes that are killed in the middle, however fast or busy the machine is."""

import signal
import subprocess
import time

PATIENCE = 900  # seconds until a test gives up, never measured
# A run in the folder ``name`` waits behind epoch ``last``, so that it cannot end before the kill.
HOLD = """
import time
from labeldp_trainer.methods import stepped as epochs

def hold(name, last, append=epochs.append_line):
    def append_or_wait(path, values):
        while path.parent.name == name and values["epoch"] > last:
            time.sleep(1)
        return append(path, values)

    epochs.append_line = append_or_wait
"""
TRAIN = """
from labeldp_trainer.cli import train_command

train_command()
"""


def kill_when(reached, command, **options):
    """Start a command, and kill it once ``reached()`` holds."""
    process = subprocess.Popen(command, **options)
    started = time.monotonic()
    while process.poll() is None and time.monotonic() - started < PATIENCE:
        if reached():
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert reached()


def kill_behind(lines, metrics, command, **options):
    """Start a command, and kill it once the file of metrics has so many lines."""

    def reached():
        return metrics.exists() and metrics.read_text().count("\n") >= lines

    kill_when(reached, command, **options)

"""``labeldp runs``: a command of the trainer."""

from labeldp_compile.cli.trainer import handed_over

runs_command = handed_over("runs")

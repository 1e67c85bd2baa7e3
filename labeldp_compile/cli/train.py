"""``labeldp train``: a command of the trainer."""

from labeldp_compile.cli.trainer import handed_over

train_command = handed_over("train")

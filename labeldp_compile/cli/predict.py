"""``labeldp predict``: a command of the trainer."""

from labeldp_compile.cli.trainer import handed_over

predict_command = handed_over("predict")

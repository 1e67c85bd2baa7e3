"""``labeldp export``: a command of the trainer."""

from labeldp_compile.cli.trainer import handed_over

export_command = handed_over("export")

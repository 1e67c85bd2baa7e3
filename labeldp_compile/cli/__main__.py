"""``python -m labeldp_compile.cli``: the command, where it is not on the path."""

from labeldp_compile.cli import main

main(prog_name="labeldp")

"""``python -m labeldp_verify FILE``."""

from labeldp_verify.command import main

main()

"""A black-box statistical audit of a running randomizer; see ``audit.py`` for its plan."""

"""The report of a verification for people and gates, and the command that prints it."""

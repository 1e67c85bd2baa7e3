"""The trainer's targets of ``labeldp export --to``, which labeldp finds by the modules' names."""

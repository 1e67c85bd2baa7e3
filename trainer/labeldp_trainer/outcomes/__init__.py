"""Uses of a finished run: summary, predictions, export, and comparison with other runs."""

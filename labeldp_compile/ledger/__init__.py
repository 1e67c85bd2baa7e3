"""The budget ledger: what was spent on each data set, written before a label is read."""

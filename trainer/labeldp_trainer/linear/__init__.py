"""Linear models out of sums over all rows, without steps."""

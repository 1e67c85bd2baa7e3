"""What a table of an artifact does: the matrix Pr[output | label], and facts derived from it."""

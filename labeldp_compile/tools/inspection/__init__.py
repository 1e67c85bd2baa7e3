"""What a table of an artifact does: the matrix Pr[output | label], and what follows from it."""

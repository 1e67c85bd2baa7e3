"""Compare mechanisms at several ε; each number comes from a verified artifact."""

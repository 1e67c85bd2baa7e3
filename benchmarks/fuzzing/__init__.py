"""Cases of ``benchmarks/fuzz.py``, how they are tried, and what must not happen."""

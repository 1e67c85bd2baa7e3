"""Where Arrow takes its memory from: the pool that gives back what is freed, at the least cost."""

from __future__ import annotations

import pyarrow as pa


def use_small_pool() -> None:
    """Choose the pool of this process: jemalloc where this pyarrow has it, or else the system's.

    mimalloc, pyarrow's own choice, keeps a third more of a table of a hundred columns; the system's
    gives memory back page by page, and its pages are cleared again for a fifth of all CPU time
    (benchmarks/memory.py, benchmarks/tables.py).
    """
    has_jemalloc = "jemalloc" in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if has_jemalloc else pa.system_memory_pool())

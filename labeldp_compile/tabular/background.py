"""Read ahead and write behind, on one thread each (Arrow works without Python's lock); and choose
where Arrow gets its memory."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each fetched while the one before it is in use."""
    end = object()
    with ThreadPoolExecutor(1) as reader:
        coming: Future[object] = reader.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = reader.submit(next, items, end)
            yield item  # type: ignore[misc]


@contextmanager
def write_behind(
    write: Callable[[T], None], size: Callable[[T], int], room: int
) -> Iterator[Callable[[T], None]]:
    """A function that hands an item to ``write`` on another thread, one at a time and in order.

    It returns at once while the sizes of the waiting items are at most ``room`` together. An error
    is raised by a later call, or at the end of the ``with`` block; waiting items are then not
    written.
    """
    thread = ThreadPoolExecutor(1)
    waiting: deque[tuple[int, Future[None]]] = deque()
    taken = 0

    def put(item: T) -> None:
        nonlocal taken
        own = size(item)
        while waiting and (taken + own > room or waiting[0][1].done()):
            before, future = waiting.popleft()
            future.result()
            taken -= before
        waiting.append((own, thread.submit(write, item)))
        taken += own

    try:
        yield put
        for _, future in waiting:
            future.result()
    finally:
        thread.shutdown(cancel_futures=True)


def use_small_pool() -> None:
    """Choose the pool of this process: jemalloc where this pyarrow has it, or else the system's.

    mimalloc, pyarrow's own choice, keeps a third more of a table of a hundred columns; the system's
    gives memory back page by page, and its pages are cleared again for a fifth of all CPU time
    (benchmarks/memory.py, benchmarks/tables.py).
    """
    has_jemalloc = "jemalloc" in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if has_jemalloc else pa.system_memory_pool())

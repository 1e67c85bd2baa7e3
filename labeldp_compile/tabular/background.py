"""Read ahead and write behind, on one thread each: Arrow works outside Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

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
def write_behind(write: Callable[[T], None]) -> Iterator[Callable[[T], None]]:
    """A function that hands an item to ``write`` on another thread, one at a time and in order.

    An error of one call is raised by the next, or at the end of the ``with`` block.
    """
    with ThreadPoolExecutor(1) as thread:
        pending: Future[None] | None = None

        def put(item: T) -> None:
            nonlocal pending
            if pending is not None:
                pending.result()
            pending = thread.submit(write, item)

        yield put
        if pending is not None:
            pending.result()

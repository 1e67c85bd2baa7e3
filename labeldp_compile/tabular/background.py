"""Read ahead and write behind, on one thread each: Arrow works outside Python's lock."""

from __future__ import annotations

from collections import deque
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
def write_behind(
    write: Callable[[T], None], size: Callable[[T], int], room: int
) -> Iterator[Callable[[T], None]]:
    """A function that hands an item to ``write`` on another thread, one at a time and in order.

    Items wait for that thread until their sizes are more than ``room`` together. An error of one
    call is raised by a later one, or at the end of the ``with`` block; then nothing more is
    written.
    """
    failed = False

    def write_unless_failed(item: T) -> None:
        nonlocal failed
        if failed:
            return
        try:
            write(item)
        except BaseException:
            failed = True
            raise

    with ThreadPoolExecutor(1) as thread:
        waiting: deque[tuple[int, Future[None]]] = deque()
        taken = 0

        def put(item: T) -> None:
            nonlocal taken
            own = size(item)
            while waiting and (taken + own > room or waiting[0][1].done()):
                before, future = waiting.popleft()
                future.result()
                taken -= before
            waiting.append((own, thread.submit(write_unless_failed, item)))
            taken += own

        try:
            yield put
            for _, future in waiting:
                future.result()
        except BaseException:
            failed = True
            raise

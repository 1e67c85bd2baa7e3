"""What a graph takes beside its words: columns of labels and of groups, all of one length."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Feed = dict[str, NDArray[Any]]
"""The columns [n] by the names of the graph's inputs."""


def rows(feed: Feed, start: int, stop: int) -> Feed:
    """The rows from ``start`` to ``stop``."""
    return {name: column[start:stop] for name, column in feed.items()}

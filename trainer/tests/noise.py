"""Runs of which the noise is known, or that must not draw any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from labeldp_trainer import randomize
from labeldp_trainer.methods.published import pate as builder
from labeldp_trainer.methods.published.pate import VOTE
from labeldp_trainer.one_release import plan as make


@contextmanager
def nothing_is_drawn() -> Iterator[None]:
    """No release and no vote is drawn: what tries to raises TypeError."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "noisy", None)
        patch.setattr(builder, "votes", None)
        patch.setattr(builder, "query_rows", None)
        patch.setattr(builder, "noisy", None)
        yield


@contextmanager
def no_noise() -> Iterator[list[Any]]:
    """Releases and votes without noise; the votes are in the list."""
    seen: list[Any] = []

    def add(votes: Any, sigma: int) -> Any:
        del sigma
        seen.append(votes // VOTE)
        return votes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "noisy", lambda total, sigma: total)
        patch.setattr(builder, "noisy", add)
        yield seen


@contextmanager
def words_from(draw: Callable[..., Any]) -> Iterator[None]:
    """The trainer's own randomizers, and those of artifacts, draw these words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomize, "random_words", draw)
        patch.setattr("labeldp_runtime.randomizer.random_words", draw)
        yield

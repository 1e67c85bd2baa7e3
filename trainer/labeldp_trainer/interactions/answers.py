"""All answers so far, and what they say of the terms of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16

from labeldp_trainer.data.features import room
from labeldp_trainer.interactions.questions import LabelQuestion, Source
from labeldp_trainer.interactions.terms import BLOCK, CellSums, Terms, tiles_of
from labeldp_trainer.one_release.rows import UNIT

_KEPT_BYTES = 7 << 28  # of rows in memory; others are on the disk
_STEPS = 1 << 15  # of an entry of a kept row, which is less than 1


class KeptRows:
    """The rows of a question in 16 bits: sums over many rows need no more."""

    def __init__(self, count: int, size: int, most: int) -> None:
        """Nothing is there yet. More than ``most`` bytes are on the disk. Raises DataError."""
        self.rows, self._there = room((count, size), np.int16, by_column=False, most=most), 0

    def keep(self, part: slice, whole: Float64[np.ndarray, "b m"]) -> None:
        """Integer rows that have been computed; parts come in order."""
        np.rint(whole * (_STEPS / UNIT), out=self.rows[part], casting="unsafe")
        self._there = part.stop

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return self._there == len(self.rows)


@dataclass
class Answer:
    """An answer, and the rows that it is of.

    Attributes:
        question: that was answered.
        statistic: [m, K].
        noise: its deviation.
        kept: [n, m] the rows in 1/_STEPS.
        offsets: [n] predictions that labels were compared with; None of classes.
    """

    question: LabelQuestion
    statistic: Float64[np.ndarray, "m k"]
    noise: float
    kept: Int16[np.ndarray, "n m"]
    offsets: Float32[np.ndarray, " n"] | None = None


@dataclass(frozen=True)
class Working:
    """A linear model around a point, for a link: label ≈ response + slope·(predictor) + noise.

    Attributes:
        slope: [n] of the mean label in the predictor.
        response: [n] what labels are at a predictor of 0, on the tangent; None if they are 0.
    """

    slope: Float32[np.ndarray, " n"]
    response: Float32[np.ndarray, " n"] | None


@dataclass
class AnswerSums:
    """Public sums over the rows, for the terms of a stage and the answers so far.

    Attributes:
        terms, working: that they are for.
        cross: [M, w] Σ q·zᵀ of integer columns z, times the slope.
        gram: [M, M] Σ q·qᵀ, times the slope, which is the variance of a class.
        alike: [M, M] of visible labels Σ s·sᵀ, with s the sum of the q of numbers whose rows no bin
            tells apart, or a q of one of two classes. The noise of what such rows share, or of
            randomizing.
        slope: [M] Σ q times the slope.
        total: [M] Σ q.
        offset: [M] Σ q·(prediction that labels were compared with, less the working response).
    """

    terms: Terms
    working: Working | None
    cross: Float64[np.ndarray, "m w"]
    gram: Float64[np.ndarray, "m m"]
    alike: Float64[np.ndarray, "m m"]
    slope: Float64[np.ndarray, " m"]
    total: Float64[np.ndarray, " m"]
    offset: Float64[np.ndarray, " m"]

    @classmethod
    def zeros(cls, m: int, terms: Terms, working: Working | None) -> AnswerSums:
        """Of m rows of answers."""
        found = np.zeros((m, terms.width)), np.zeros((m, m)), np.zeros((m, m))
        return cls(terms, working, *found, np.zeros(m), np.zeros(m), np.zeros(m))

    def take(self, before: AnswerSums) -> tuple[int, Bool[np.ndarray, " w"]]:
        """Take over sums of fewer answers, around the same point. Returns of how many rows of
        answers, and in which columns."""
        known, same = len(before.total), np.zeros(self.terms.width, bool)
        same[0] = True
        self.cross[:known, 0] = before.cross[:, 0]
        there = dict(zip(before.terms.chosen, before.terms.places, strict=True))
        for term, own in zip(self.terms.chosen, self.terms.places, strict=True):
            if term in there:
                self.cross[:known, own] = before.cross[:, there[term]]
                same[own] = True
        self.gram[:known, :known] = before.gram
        self.alike[:known, :known] = before.alike
        self.slope[:known], self.total[:known] = before.slope, before.total
        self.offset[:known] = before.offset
        return known, same


@dataclass
class Answers:
    """Answers about the rows of one table.

    Attributes:
        terms: of the table; which are chosen does not matter.
        factors: [n] how much a row counts in a fit to all of them.
        visible: as in ``Source``.
        found: the answers.
    """

    terms: Terms
    factors: Float32[np.ndarray, " n"]
    visible: bool
    found: list[Answer] = field(default_factory=list)

    def ask(self, source: Source, question: LabelQuestion) -> None:
        """One more answer."""
        n = len(self.terms.codes)
        most = _KEPT_BYTES - sum(answer.kept.nbytes for answer in self.found)
        kept = KeptRows(n, question.size, most)
        answered, shares, statistic, noise, predicted = source.sums(question, kept.keep)
        if not kept.complete:  # the answer was there already
            kept = KeptRows(n, answered.size, most)
            for part, whole in answered.integer_rows(self.terms, shares):
                kept.keep(part, whole)
        answer = Answer(answered, statistic, noise, kept.rows)
        if predicted is not None:
            answer.offsets = room(predicted.shape, np.float32)
            answer.offsets[:] = predicted
        self.found.append(answer)

    def sums(
        self, terms: Terms, working: Working | None, before: AnswerSums | None = None
    ) -> AnswerSums:
        """The sums for these terms. What ``before`` has is not computed again."""
        sizes = [answer.question.size for answer in self.found]
        new = AnswerSums.zeros(sum(sizes), terms, working)
        known, same = 0, np.zeros(terms.width, bool)
        if before is not None and before.working is working:
            known, same = new.take(before)
        added = [a for a, end in zip(self.found, np.cumsum(sizes), strict=True) if end > known]
        others = np.flatnonzero(~same)
        chosen = zip(terms.chosen, terms.places, strict=True)
        missing = CellSums.of(terms.of(tuple(term for term, own in chosen if not same[own.start])))
        every = CellSums.of(terms) if added else missing
        for block in terms.parts(BLOCK):
            rows = [answer.kept[block] for answer in self.found]
            sloped = None if working is None else working.slope[block]
            adder, other = every.adder(block), missing.adder(block)
            for at, q in _tiles(rows, sloped):
                if at.start >= known:
                    new.cross[at] += adder.sums(q)
                elif len(others):
                    new.cross[at, others] += other.sums(q)[:, 1:]
            if added:
                self._squares(new, block, rows, known)
        for square in (new.gram, new.alike):
            square[known:, :known] = square[:known, known:].T
        return new

    def _squares(
        self, new: AnswerSums, block: slice, rows: list[Int16[np.ndarray, "b m"]], known: int
    ) -> None:
        """Add all that is no product with the design."""
        terms, working = new.terms, new.working
        whole = Terms(terms.columns, terms.codes[block], ())
        for part in whole.parts():
            everything = np.concatenate([own[part] for own in rows], axis=1, dtype=np.float32)
            everything *= np.float32(1 / _STEPS)
            at = slice(block.start + part.start, block.start + part.stop)
            sloped = everything if working is None else everything * working.slope[at][:, None]
            new.gram[:, known:] += everything.T @ sloped[:, known:]
            if self.visible:
                alike = everything
                if working is None:
                    alike = np.add.reduceat(everything, whole.first_of_alike(part), axis=0)
                new.alike[:, known:] += alike.T @ alike[:, known:]
            new.slope[known:] += sloped[:, known:].sum(axis=0)
            new.total[known:] += everything[:, known:].sum(axis=0)
            end = 0
            for answer in self.found:
                own, end = slice(end, end + answer.question.size), end + answer.question.size
                if own.start >= known and answer.offsets is not None:
                    new.offset[own] += everything[:, own].T @ answer.offsets[at]
            if working is not None and working.response is not None:
                new.offset[known:] -= everything[:, known:].T @ working.response[at]

    def statistic(self) -> Float64[np.ndarray, "m k"]:
        """That of all answers."""
        return np.concatenate([answer.statistic for answer in self.found])

    def noise(self) -> Float64[np.ndarray, " m"]:
        """Variances of the noise of all answers."""
        sizes = [answer.question.size for answer in self.found]
        return np.repeat([answer.noise**2 for answer in self.found], sizes)

    def rows(self, part: slice) -> Float32[np.ndarray, "b m"]:
        """The rows q of all answers, of some rows of the table."""
        found = [answer.kept[part] for answer in self.found]
        return np.concatenate(found, axis=1, dtype=np.float32) * np.float32(1 / _STEPS)


def _tiles(
    rows: list[Int16[np.ndarray, "b m"]], slope: Float32[np.ndarray, " b"] | None
) -> Iterator[tuple[slice, Float32[np.ndarray, "b t"]]]:
    """Some columns of the rows of all answers at a time, times the slope."""
    end = 0
    for own in rows:
        for tile in tiles_of(own.shape[1]):
            found = own[:, tile].astype(np.float32)
            found *= np.float32(1 / _STEPS) if slope is None else slope[:, None] / _STEPS
            yield slice(end + tile.start, end + tile.stop), found
        end += own.shape[1]

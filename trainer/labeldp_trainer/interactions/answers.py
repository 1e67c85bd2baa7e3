"""All answers so far, and what they say of the terms of a stage."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Float64

from labeldp_trainer.interactions.ask import LabelQuestion
from labeldp_trainer.interactions.terms import Terms
from labeldp_trainer.one_release.lattice import UNIT

_KEPT_BYTES = 1 << 30  # of rows that are not computed again


@dataclass
class Answer:
    """An answer, and the rows that it is of.

    Attributes:
        question: that was answered.
        statistic: [m, K].
        noise: its deviation.
        kept: [n, m] the rows, while there is room for them.
        offsets: [n] predictions that labels were compared with; None of classes.
    """

    question: LabelQuestion
    statistic: Float64[np.ndarray, "m k"]
    noise: float
    kept: Float32[np.ndarray, "n m"] | None = None
    offsets: Float32[np.ndarray, " n"] | None = None


@dataclass(frozen=True)
class Working:
    """A linear model around a point, for a link: label ≈ response + slope·(predictor) + noise.

    Attributes:
        slope: [n] of the mean label in the predictor.
        response: [n] what labels are at a predictor of 0, on the tangent.
    """

    slope: Float32[np.ndarray, " n"]
    response: Float32[np.ndarray, " n"]


@dataclass
class AnswerSums:
    """Public sums over the rows, for the terms of a stage and the answers so far.

    Attributes:
        cross: [M, w] Σ q·zᵀ of integer columns z, times the slope.
        gram: [M, M] Σ q·qᵀ, times the slope, which is the variance of a class.
        slope: [M] Σ q times the slope.
        total: [M] Σ q.
        offset: [M] Σ q·(prediction that labels were compared with, less the working response).
    """

    cross: Float64[np.ndarray, "m w"]
    gram: Float64[np.ndarray, "m m"]
    slope: Float64[np.ndarray, " m"]
    total: Float64[np.ndarray, " m"]
    offset: Float64[np.ndarray, " m"]


@dataclass
class Answers:
    """Answers about the rows of one table.

    Attributes:
        terms: of the table; which are chosen does not matter.
        shares: [n] that multiply the rows, or None.
        found: the answers.
    """

    terms: Terms
    shares: Float32[np.ndarray, " n"] | None
    found: list[Answer] = field(default_factory=list)

    def add(
        self, question: LabelQuestion, statistic: Float64[np.ndarray, "m k"], noise: float
    ) -> None:
        """One more answer."""
        answer = Answer(question, statistic, noise)
        n = len(self.terms.codes)
        taken = sum(each.kept.nbytes for each in self.found if each.kept is not None)
        if taken + 4 * n * question.size <= _KEPT_BYTES:
            answer.kept = np.concatenate([self._rows(answer, part) for part in self.terms.parts()])
        if question.offset is not None:
            answer.offsets = question.offset.over(self.terms).astype(np.float32)
        self.found.append(answer)

    def sums(
        self, terms: Terms, working: Working | None, before: AnswerSums | None = None
    ) -> AnswerSums:
        """The sums for these terms. ``before`` has those of all answers but the last."""
        sizes = [answer.question.size for answer in self.found]
        m, known = sum(sizes), sum(sizes[:-1]) if before is not None else 0
        new = AnswerSums(
            np.zeros((m - known, terms.width)),
            np.zeros((m, m - known)),
            np.zeros(m - known),
            np.zeros(m - known),
            np.zeros(m - known),
        )
        added = self.found[-1:] if before is not None else self.found
        for part, z in terms.chunks():
            rows = {id(answer): self._rows(answer, part) for answer in self.found}
            everything = np.concatenate(list(rows.values()), axis=1)
            q = everything[:, known:]
            sloped = q if working is None else q * working.slope[part][:, None]
            new.cross += sloped.T @ z.astype(np.float32)
            new.gram += everything.T @ sloped
            new.slope += sloped.sum(axis=0)
            new.total += q.sum(axis=0)
            compared = [
                rows[id(answer)].T @ answer.offsets[part]
                if answer.offsets is not None
                else np.zeros(answer.question.size)
                for answer in added
            ]
            new.offset += np.concatenate(compared)
            if working is not None:
                new.offset -= q.T @ working.response[part]
        if before is None:
            return new
        above = np.concatenate([before.gram, new.gram[:known].T])
        return AnswerSums(
            np.concatenate([before.cross, new.cross]),
            np.concatenate([above, new.gram], axis=1),
            np.concatenate([before.slope, new.slope]),
            np.concatenate([before.total, new.total]),
            np.concatenate([before.offset, new.offset]),
        )

    def statistic(self) -> Float64[np.ndarray, "m k"]:
        """That of all answers."""
        return np.concatenate([answer.statistic for answer in self.found])

    def noise(self) -> Float64[np.ndarray, " m"]:
        """Variances of the noise of all answers."""
        sizes = [answer.question.size for answer in self.found]
        return np.repeat([answer.noise**2 for answer in self.found], sizes)

    def _rows(self, answer: Answer, part: slice) -> Float32[np.ndarray, "b m"]:
        if answer.kept is not None:
            return answer.kept[part]
        z = self.terms.of(answer.question.terms).rows(part)
        shares = None if self.shares is None else self.shares[part]
        return (answer.question.rows.integers(z, shares) / UNIT).astype(np.float32)

"""What staged releases of two neighbouring tables tell apart, beside what they state.

Tables of four rows, with classes, with numbers, and with users all of whose labels are replaced.
Both of two neighbouring columns of labels are released many times, stage after stage. The
likelihood ratio of all answers together orders the releases; counts of half-lines of it prove a
lower bound on ε at the stated δ (Clopper and Pearson, each wrong with a chance of 1e-10). Then the
same with a third of the noise, which must be found. Prints a markdown table. The questions are

* those of an attacker: rows as long as any, and questions that depend on the sides on which earlier
  answers lie. There are few histories of sides: the exact statistics are computed once for each;
* those of the model in a few sampled histories, asked again and again with fresh noise;
* those of the model in whole runs, as many as fit into the given seconds.

In the first two, coordinates in which the tables do not differ are not drawn: nothing depends on
them.

    python benchmarks/staged_release_audit.py [RELEASES [SECONDS]]
"""

import dataclasses
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_trainer.data import array_digest
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.interactions.columns import entries_of, learn_columns
from labeldp_trainer.interactions.questions import RowWeights
from labeldp_trainer.interactions.stages import Learner
from labeldp_trainer.interactions.terms import Term
from labeldp_trainer.one_release.rows import RowOwners, Users, user_counts
from labeldp_trainer.staged_release.draw import Draws, LabelColumn, PublicTable
from labeldp_trainer.staged_release.plan import KINDS
from labeldp_trainer.staged_release.release import (
    LabelQuestion,
    Offset,
    ReleaseInStages,
    StagedFacts,
)

from benchmarks.one_release_audit import DELTA, least_epsilon

CUTS = np.linspace(-1.5, 3.5, 41)
"""Of the log-likelihood ratio, in units of its mean under the first table."""
_TOGETHER = 50_000  # releases whose noise is drawn in one call
_HISTORIES = 20  # of the model
_SPREAD = 0.25  # variance of residuals, which public groups have
_ENDS = (-1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Case:
    """A table, two neighbouring columns of its labels, and the release before any stage."""

    codes: np.ndarray
    rows: RowOwners
    pair: tuple[np.ndarray, np.ndarray]
    release: ReleaseInStages

    def draws(self, table: int, release: ReleaseInStages, add_noise) -> Draws:
        """A source of answers about one of the two columns of labels."""
        public = PublicTable({}, release.columns, self.codes, self.rows)
        labels = LabelColumn(self.pair[table])
        return Draws(release, public, labels, lambda grown: None, add_noise=add_noise)


def cases(epsilon: float) -> dict[str, Case]:
    """Tables of four rows, whose difference is as large as it can be."""
    numeric = np.array([[0.3], [-1.2], [2.0], [0.9]], np.float32)
    one, other = np.array([0, 1, 1, 0], np.int32), np.array([0, 1, 0, 0], np.int32)
    owners = np.array([0, 1, 1, 2])
    alike = numeric[[0, 2, 2, 3]]  # a user whose rows add up as far as any can
    return {
        "classes": _case(numeric, (one, other), epsilon, classes=(0, 1)),
        "numbers": _case(numeric, (one * 1.0, np.array([0, 1, -1.0, 0])), epsilon),
        "users": _case(alike, (one, one * 0), epsilon, classes=(0, 1), owners=owners),
    }


def _case(numeric, pair, epsilon, classes=None, owners=None) -> Case:
    features = {"numeric": numeric, "categorical": np.zeros((len(numeric), 0), np.int32)}
    columns = learn_columns(features, ())
    codes = np.stack([columns[0].codes(entries_of(features)[0])], axis=1)
    whose = None
    if owners is not None:
        whose = Users.of("user", 2, user_counts(owners, np.arange(len(owners))))
    rows = RowOwners(count=len(numeric), owners=owners, users=whose)
    facts = StagedFacts(
        classes=classes,
        label_range=_ENDS if classes is None else None,
        epsilon=repr(epsilon),
        delta=repr(DELTA),
        label="y",
        rows=rows.count,
        users=whose,
        features_sha256=array_digest(features),
        in_pairs=tuple(column.in_pairs for column in columns),
    )
    return Case(codes, rows, pair, ReleaseInStages(facts, tuple(columns)))


@dataclasses.dataclass
class Attacker:
    """Asks about the rows that change, by the signs of what was answered.

    ``signs`` are those of the answers before the stage whose exact statistics are wanted.
    """

    case: Case
    signs: tuple[int, ...]

    def exact(self, table: int) -> tuple[np.ndarray, int]:
        """The exact statistic of the next stage after these signs, and the scale of its noise."""
        found: list[tuple[np.ndarray, int]] = []

        def keep(exact, sigma):
            found.append((exact.copy(), sigma))
            return exact  # the stages before the wanted one are stored, as if without noise

        draws = self.case.draws(table, self.case.release, keep)
        kinds = KINDS[self.case.release.facts.classes is not None]
        for kind, _ in kinds[: len(self.signs) + 1]:
            self._ask(draws, kind, len(found))
        return found[-1]

    def _ask(self, draws: Draws, kind: str, stage: int) -> None:
        if kind == "labels":
            draws.labels()
        elif kind == "sizes":
            draws.residuals(self._offset(stage))
        elif kind == "residuals":
            draws.curve(self._offset(stage), _SPREAD)
        else:
            # a long row of one function of the column, whose sign earlier answers decide
            width = 1 + self.case.release.columns[0].rank
            weights = np.zeros((width, 2), np.int32)
            weights[0, 0], weights[1, 1] = 1 << 10, (1 << 12) * self._sign(stage)
            rows = RowWeights(weights, 8, 1.0)
            numbers = self.case.release.facts.classes is None
            clip = 1.0 if self._sign(stage) > 0 else 0.5
            offset = self._offset(stage) if numbers else None
            draws.sums(
                LabelQuestion((Term((0,)),), rows, offset, clip if numbers else 1.0),
                lambda part, rows: None,
            )

    def _sign(self, stage: int) -> int:
        return self.signs[stage - 1] if stage else 1

    def _offset(self, stage: int) -> Offset:
        width = 1 + self.case.release.columns[0].rank
        weights = np.zeros(width, np.int32)
        weights[0] = 1
        return Offset((Term((0,)),), weights, 2.0**-12, 0.25 * self._sign(stage), _ENDS)


def by_attacker(case: Case, count: int, less: int) -> float:
    """The largest ε that releases to the attacker prove. The noise is divided by ``less``."""
    stages = len(KINDS[case.release.facts.classes is not None])
    ratios = np.zeros((2, count))
    histories = np.zeros((2, count), np.int64)  # a bit for each answer: the side where it lies
    for stage in range(stages):
        before = histories.copy()
        for history in range(1 << stage):
            signs = tuple(1 if history >> i & 1 else -1 for i in range(stage))
            attacker = Attacker(case, signs)
            pair = Pair.of(attacker.exact(0), attacker.exact(1))
            for table in (0, 1):
                own = np.flatnonzero(before[table] == history)
                found = pair.drawn(table, len(own), less)
                ratios[table, own] += found
                histories[table, own] |= (found > 0).astype(np.int64) << stage
    return proved(*ratios)


@dataclasses.dataclass(frozen=True)
class Pair:
    """The exact statistics of a stage of both tables, where they differ.

    Attributes:
        exact: [2, d].
        sigma: of the noise.
    """

    exact: np.ndarray
    sigma: int

    @classmethod
    def of(cls, one: tuple[np.ndarray, int], other: tuple[np.ndarray, int]) -> "Pair":
        """From statistics and scales; the scale is public, and the same."""
        assert one[1] == other[1]
        exact = np.stack([one[0].ravel(), other[0].ravel()])
        return cls(exact[:, exact[0] != exact[1]], one[1])

    def drawn(self, table: int, count: int, less: int) -> np.ndarray:
        """[count] log-likelihood ratios of releases of a table."""
        parts = [np.zeros(0)]
        for start in range(0, count, _TOGETHER):
            size = min(_TOGETHER, count - start)
            answers = noisy(np.tile(self.exact[table], (size, 1)), self.sigma // less)
            parts.append(self.ratio(answers))
        return np.concatenate(parts)

    def ratio(self, answers: np.ndarray) -> np.ndarray:
        """[count] of answers [count, d]."""
        step = (self.exact[0] - self.exact[1]).astype(np.float64)
        return (answers - self.exact.mean(axis=0)) @ step / self.sigma**2


def by_model(case: Case, count: int, less: int) -> float:
    """The largest ε that questions of the model prove, each history asked with fresh noise."""
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for _ in range(_HISTORIES):
        pairs, _ = _run_of_model(case, 0)
        for table in (0, 1):
            each = [pair.drawn(table, count // _HISTORIES, less) for pair in pairs]
            found[table].append(np.sum(each, axis=0))
    return proved(*map(np.concatenate, found))


def by_runs(case: Case, seconds: float) -> tuple[float, int]:
    """The largest ε that whole runs prove, and how many runs there were of each table."""
    ratios: tuple[list[float], list[float]] = ([], [])
    until = time.process_time() + seconds
    while time.process_time() < until:
        for table in (0, 1):
            ratios[table].append(_run_of_model(case, table)[1])
    return proved(*map(np.array, ratios)), len(ratios[0])


def _run_of_model(case: Case, table: int) -> tuple[list[Pair], float]:
    """A run on one of the tables: the statistics of both along its history, and the ratio."""
    found: list[list[tuple[np.ndarray, int]]] = [[], []]

    def add(exact, sigma):
        found[table].append((exact.copy(), sigma))
        return noisy(exact, sigma)

    draws = case.draws(table, case.release, add)
    source = Recorded(draws, [])
    _learn(case, source)
    answers = [part.answer for part in draws.release.parts]

    def stored(exact, sigma):
        found[1 - table].append((exact.copy(), sigma))
        return answers[len(found[1 - table]) - 1].reshape(exact.shape)

    again = case.draws(1 - table, case.release, stored)
    for name, asked in source.questions:
        getattr(again, name)(*asked)
    pairs = [Pair.of(*each) for each in zip(*found, strict=True)]
    ratio = 0.0
    for pair, answer, (one, _), (other, _) in zip(pairs, answers, *found, strict=True):
        differ = one.ravel() != other.ravel()
        ratio += float(pair.ratio(answer.ravel()[differ]))
    return pairs, ratio


class Recorded:
    """A source that passes on questions and keeps them."""

    def __init__(self, draws: Draws, questions: list) -> None:
        """Nothing is asked yet."""
        self.draws, self.questions = draws, questions

    def __getattr__(self, name):
        """What the source has, or the function that asks it."""
        found = getattr(self.draws, name)
        if name not in ("labels", "sums", "residuals", "curve"):
            return found

        def ask(*asked):
            self.questions.append((name, asked))
            return found(*asked)

        return ask


def _learn(case: Case, source) -> None:
    columns = list(case.release.columns)
    Learner(columns, case.codes, source, case.rows.relative, 1).learn()


def proved(one: np.ndarray, other: np.ndarray) -> float:
    """The largest ε that half-lines of the log-likelihood ratio prove, both ways."""
    size = max(float(one.mean()), 1e-9)
    found = 0.0
    for a, b in ((one, other), (-other, -one)):
        for cut in CUTS * size:
            hits = int((a > cut).sum()), int((b > cut).sum())
            found = max(found, least_epsilon(*hits, len(a)))
    return found


def main(count: int, seconds: float) -> None:
    """Audit all cases at two ε."""
    print("| table | ε | questions | releases | proved | with a third of the noise | seconds |")
    print("|---|---:|---|---:|---:|---:|---:|", flush=True)
    for epsilon in (0.3, 1.0):
        for name, case in cases(epsilon).items():
            for words, audit in (("attacker", by_attacker), ("model", by_model)):
                started = time.process_time()
                found, planted = audit(case, count, 1), f"{audit(case, count // 10, 3):.3f}"
                spent = time.process_time() - started
                _print(name, epsilon, words, count, found, planted, spent)
            found, runs = by_runs(case, seconds)
            _print(name, epsilon, "model, whole runs", runs, found, "", seconds)


def _print(name, epsilon, words, count, found, planted, seconds) -> None:
    line = f"| {name} | {epsilon} | {words} | {count:,} | {found:.3f} | {planted} | {seconds:.0f} |"
    print(line, flush=True)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000,
        float(sys.argv[2]) if len(sys.argv) > 2 else 100.0,
    )

"""What releases of two neighbouring tables tell apart, beside what they state.

A small table, with classes, with numbers, and with users all of whose labels are replaced, is
released a million times with each of two neighbouring columns of labels. Counts of half-spaces
across the difference of the two sums prove a lower bound on ε at the stated δ (Clopper and
Pearson, each wrong with a chance of 1e-10). Then the same with a third of the noise, which must be
found. Prints a markdown table.

    python benchmarks/one_release_audit.py [RELEASES]
"""

import dataclasses
import math
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))

from labeldp_trainer.config import OneRelease
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.one_release.plan import drawn, planned
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.one_release.rows import PublicRows, Users, user_counts

SURE = 1e-10
DELTA = 1e-2
_TOGETHER = 20_000  # releases whose noise is drawn in one call
_NOISY = "labeldp_trainer.one_release.plan.noisy"


@dataclasses.dataclass(frozen=True)
class Case:
    """A table, two neighbouring columns of its labels, and the method that releases it."""

    rows: PublicRows
    pair: tuple[np.ndarray, np.ndarray]
    method: OneRelease
    classes: tuple[int | str, ...] | None

    def plan(self):
        """The release before any label is seen."""
        return planned(self.rows, self.method, self.classes, "label")


def with_noise(plan: Release, sigma: int) -> Release:
    """The plan with noise of another scale."""
    return dataclasses.replace(plan, facts=plan.facts.model_copy(update={"sigma": sigma}))


def cases(epsilon: float) -> dict[str, Case]:
    """Tables of few rows, whose difference is as large as it can be."""
    vectors = np.array([[0.3], [-1.2], [2.0], [0.9]], np.float32)
    owners = np.array([0, 1, 1, 2])
    alone = PublicRows(count=len(vectors), vectors=vectors, spectrum=None)
    users = PublicRows(
        count=4,
        vectors=vectors[[0, 2, 2, 3]],
        spectrum=None,
        owners=owners,
        users=Users.of("user", 2, user_counts(owners, np.arange(4))),
    )
    stated = {"kind": "one_release", "epsilon": epsilon, "delta": DELTA}
    classes = OneRelease.model_validate(stated)
    numbers = OneRelease.model_validate(stated | {"label_range": (-1, 1)})
    one = np.array([0, 1, 1, 0])
    return {
        "classes": Case(alone, (one, np.array([0, 1, 0, 0])), classes, (0, 1)),
        "numbers": Case(alone, (one * 1.0, np.array([0, 1, -9.0, 0])), numbers, None),
        "users": Case(users, (one, np.array([0, 0, 0, 0])), classes, (0, 1)),
    }


def proved(case: Case, plan, count: int) -> float:
    """The largest ε that half-spaces prove of releases, both ways."""
    with mock.patch(_NOISY, lambda total, sigma: total):
        sums = [_drawn(case, labels).ravel() for labels in case.pair]
    step = (sums[0] - sums[1]).astype(np.float64)
    cuts = np.linspace(-1, 5, 13)
    above, below = np.zeros((2, len(cuts)), np.int64), np.zeros((2, len(cuts)), np.int64)
    for start in range(0, count, _TOGETHER):
        for table, labels in enumerate(case.pair):
            found = _released(case, plan, labels, min(_TOGETHER, count - start))
            places = (found - sums[1]) @ step / np.square(step).sum()
            above[table] += (places[:, None] > cuts[None, :]).sum(axis=0)
            below[table] += (1 - places[:, None] > cuts[None, :]).sum(axis=0)
    return max(
        least_epsilon(int(one), int(other), count)
        for hits in (above, below[::-1])
        for one, other in zip(*hits, strict=True)
    )


def least_epsilon(hits: int, others: int, count: int) -> float:
    """What counts of one event prove, and those of its complement."""
    found = 0.0
    for a, b in ((hits, others), (count - others, count - hits)):
        low = beta.ppf(SURE, a, count - a + 1) if a else 0.0
        high = beta.isf(SURE, b + 1, count - b) if b < count else 1.0
        if low > DELTA:
            found = max(found, math.log((low - DELTA) / high))
    return found


def _released(case: Case, plan, labels: np.ndarray, count: int) -> np.ndarray:
    """[count, d·k] releases: the table is summed once, and each gets noise of its own."""

    def often(total, sigma):
        del sigma  # the plan may have noise of another scale
        return noisy(np.tile(total, (count, 1)), plan.facts.sigma)

    with mock.patch(_NOISY, often):
        return _drawn(case, labels).reshape(count, -1)


def _drawn(case: Case, labels: np.ndarray) -> np.ndarray:
    return drawn(case.rows, case.method, case.classes, "label", labels).statistic


def main(count: int) -> None:
    """Audit all cases at two ε."""
    print("| table | ε | proved of the releases | with a third of the noise | seconds |")
    print("|---|---:|---:|---:|---:|")
    for epsilon in (0.3, 1.0):
        for name, case in cases(epsilon).items():
            started, plan = time.monotonic(), case.plan()
            found = proved(case, plan, count)
            seconds = time.monotonic() - started
            less = with_noise(plan, plan.facts.sigma // 3)
            planted = proved(case, less, count // 10)
            print(
                f"| {name} | {epsilon} | {found:.3f} | {planted:.3f} | {seconds:.0f} |", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

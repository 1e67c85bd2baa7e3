"""Every labeling of tiny tables along many histories: what neighbours move in each part."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer.staged_release import draw

from trainer.tests.staged_release.staged_helpers import ALL, ENDS, own_noise, table

HISTORIES = 170 if ALL else 3
"""Of each of these tables."""
NUMBERS = (ENDS[0], 0.1, ENDS[1], np.nan)  # the last one is missing
TABLES = {
    "classes": {"classes": (0, 1, 2)},
    "numbers": {},
    "numbers that seem alike": {},
    "numbers with weights": {"weights": np.float32([3, 1, 0.5, 3])},
    "classes of users": {"classes": (0, 1, 2), "owners": [0, 1, 1, 0]},
    "numbers of users": {"owners": [0, 1, 1, 1]},
}


class Recorded:
    """A source that passes on what it is asked."""

    def __init__(self, draws):
        self.draws, self.questions = draws, []

    def __getattr__(self, name):
        found = getattr(self.draws, name)
        if name not in ("labels", "sums", "residuals", "curve"):
            return found

        def ask(*asked):
            self.questions.append((name, asked))
            return found(*asked)

        return ask


def exact_parts(own, release, questions, labels):
    """The exact statistic of each part for these labels, along the history of a release."""
    found, answers = [], iter(part.answer for part in release.parts)

    def answer(exact, sigma):
        found.append(exact.copy())
        return next(answers).reshape(exact.shape)

    draws = own.draws(labels, add_noise=answer)
    for name, asked in questions:
        getattr(draws, name)(*asked)
    assert draws.release.sha256 == release.sha256  # what is public is the same for all labels
    return found


def groups_of(rows):
    if rows.owners is None:
        return [(i,) for i in range(rows.count)]
    return [tuple(np.flatnonzero(rows.owners == user)) for user in range(rows.units)]


def farthest_apart(exact, group, values):
    """The largest squared distance of statistics [labelings, …] that differ in a group's labels."""
    grid = np.moveaxis(np.arange(len(exact)).reshape((values,) * 4), group, range(len(group)))
    farthest = 0
    for one, other in itertools.combinations(grid.reshape(values ** len(group), -1), 2):
        moved = exact[one] - exact[other]
        about = np.square(moved.astype(float)).sum(axis=1)
        for longest in moved[about >= max(about.max(), farthest) * (1 - 1e-9)]:
            farthest = max(farthest, int(np.square(longest.astype(object)).sum()))
    return farthest


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_no_neighbour_moves_a_part_by_more_than_it_states(name, monkeypatch):
    alike = name == "numbers that seem alike"
    if alike:
        monkeypatch.setattr(draw, "_DEVIATIONS", np.inf)
        monkeypatch.setattr(draw, "NEARLY_ALL", 0.0)
    values = (0, 1, 2) if "classes" in name else NUMBERS
    kind = np.int32 if "classes" in name else np.float64
    labelings = list(itertools.product(range(len(values)), repeat=4))
    histograms_reached = shares = 0.0
    for seed in range(HISTORIES):
        random = np.random.default_rng(seed)
        own = table(seed, 4, epsilon=float(random.choice([0.5, 1.0, 4.0])), **TABLES[name])
        true = np.array(values, kind)[random.integers(0, len(values), 4)]
        recorded = Recorded(own.draws(true, add_noise=own_noise(random)))
        own.learn(recorded)
        release = recorded.draws.release
        found = [
            exact_parts(own, release, recorded.questions, np.array([values[i] for i in y], kind))
            for y in labelings
        ]
        groups = groups_of(own.public.rows)
        for number, part in enumerate(release.parts):
            exact = np.stack([parts[number].ravel() for parts in found])
            farthest = max(farthest_apart(exact, group, len(values)) for group in groups)
            stated = part.facts.squared_sensitivity
            assert farthest <= stated
            if part.facts.kind == "labels":
                assert farthest == stated
                histograms_reached += 1
            elif part.facts.kind == "sums":
                assert bool(part.facts.terms) != alike
                shares = max(shares, farthest / stated)
        facts = release.facts
        epsilon, delta = Fraction(facts.epsilon), Fraction(facts.delta)
        assert own.plan.proved_delta([part.noise for part in release.parts], epsilon) <= delta
    assert histograms_reached == HISTORIES
    assert shares > 0.999 if "users" not in name else shares > 0.2

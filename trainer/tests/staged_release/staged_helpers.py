"""Tiny tables, releases of them, and learners that ask for them."""

import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from labeldp_trainer.config.method import StagedRelease as StagedConfig
from labeldp_trainer.data import array_digest
from labeldp_trainer.interactions.columns import entries_of, learn_columns
from labeldp_trainer.interactions.stages import Learner
from labeldp_trainer.one_release.rows import RowOwners, Users, user_counts
from labeldp_trainer.staged_release.draw import Draws, LabelColumn, PublicTable
from labeldp_trainer.staged_release.plan import BudgetPlan
from labeldp_trainer.staged_release.release import ReleaseInStages, StagedFacts

ALL = os.environ.get("LABELDP_LONG") == "1"
ENDS = (-1.0, 2.0)


@dataclass(frozen=True)
class Table:
    """The public side of a table, the release of it before any part, and who learns from it."""

    public: PublicTable
    release: ReleaseInStages
    order: int = 1

    @property
    def classes(self):
        return self.release.facts.classes

    @property
    def method(self):
        facts = self.release.facts
        stated = {"kind": "staged_release", "epsilon": float(facts.epsilon)}
        if facts.users is not None:
            most = facts.users.max_examples_per_user
            stated |= {"user_column": "user", "max_examples_per_user": most}
        if facts.label_range is not None:
            stated["label_range"] = list(facts.label_range)
        return StagedConfig.model_validate(stated | {"delta": float(facts.delta)})

    @property
    def plan(self):
        facts = self.release.facts
        numbers = Fraction(facts.epsilon), Fraction(facts.delta)
        return BudgetPlan.of(*numbers, classes=self.classes is not None)

    def draws(self, labels, release=None, grown=lambda grown: None, **more):
        true = None if labels is None else LabelColumn(labels)
        found = self.release if release is None else release
        return Draws(found, self.public, true, grown, **more)

    def learn(self, draws):
        columns, codes, rows = list(self.release.columns), self.public.codes, self.public.rows
        return Learner(columns, codes, draws, rows.relative, self.order).learn()

    def drawn(self, labels, **more):
        draws = self.draws(labels, **more)
        self.learn(draws)
        return draws.release


def table(
    seed,
    count,
    *,
    classes=None,
    owners=None,
    epsilon=1.0,
    delta=1e-2,
    order=1,
    colours=0,
    usual=0.0,
    weights=None,
):
    """Two columns of numbers, one with a missing entry, and perhaps a column of colours.

    About a share ``usual`` of the first column is 0.
    """
    random = np.random.default_rng(seed)
    numeric = random.normal(size=(count, 2)).astype(np.float32)
    numeric[0, 1] = np.nan
    if usual:
        numeric[random.random(count) < usual, 0] = 0.0
    categorical = random.integers(1, 1 + max(colours, 1), (count, int(colours > 0)))
    features = {"numeric": numeric, "categorical": categorical.astype(np.int32)}
    vocabularies = (1 + colours,) * int(colours > 0)
    columns = learn_columns(features, vocabularies)
    entries = entries_of(features)
    codes = np.stack([c.codes(e) for c, e in zip(columns, entries, strict=True)], axis=1)
    users = None
    if owners is not None:
        owners = np.asarray(owners, np.int64)
        users = Users.of("user", 3, user_counts(owners, np.arange(len(owners))))
    rows = RowOwners(count=count, owners=owners, users=users, weights=weights)
    facts = StagedFacts(
        classes=classes,
        label_range=None if classes is not None else ENDS,
        epsilon=repr(epsilon),
        delta=repr(delta),
        label="y",
        rows=count,
        users=users,
        features_sha256=array_digest(features),
        in_pairs=tuple(column.in_pairs for column in columns),
    )
    public = PublicTable(features, columns, codes, rows)
    return Table(public, ReleaseInStages(facts, tuple(columns)), order)


def own_noise(random):
    """Gaussian noise of the stated scale, from a seed."""

    def add(exact, sigma):
        return exact + np.rint(random.normal(size=exact.shape) * sigma).astype(np.int64)

    return add

"""Which rows of a user take part, decided without a look at any label."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.base import UserLevel
from labeldp_trainer.data import Part, array_digest
from labeldp_trainer.data.labels import taken
from labeldp_trainer.data.owners import owner_codes
from labeldp_trainer.dp_gradient.sampling import Groups, group_by_user
from labeldp_trainer.methods.method import Setting


def user_groups(loaded: LoadedConfig, train: Part) -> Groups:
    """Rows by user, at most ``max_examples_per_user`` each. Raises DataError.

    The choice is a function of the public user column and the public seed.
    """
    method = loaded.config.method
    assert isinstance(method, UserLevel)
    assert method.user_column is not None
    assert method.max_examples_per_user is not None
    owners = owners_of(train, method.user_column)
    most = min(method.max_examples_per_user, int(np.bincount(owners).max()))
    return group_by_user(owners, most, loaded.config.training.seed)


def owners_of(part: Part, column: str) -> Int64[np.ndarray, " n"]:
    """[n] the number of the user who owns each row of a part. Raises DataError."""
    return owner_codes(part.columns[column], part.source, column)


def used_rows(setting: Setting) -> NDArray[np.int64] | None:
    """The rows that take part, in their order in the file; None if labels are the units: all."""
    if user_column(setting.loaded) is None:
        return None
    return kept_rows(user_groups(setting.loaded, setting.dataset.train))


def limited_to_users(setting: Setting) -> Setting:
    """Without the rows of a user beyond the most that are used. Raises InputError."""
    return limited_to(used_rows(setting), setting)


def limited_to(rows: NDArray[np.int64] | None, setting: Setting) -> Setting:
    """With these rows alone, or None for all. Raises InputError."""
    if rows is None:
        return setting
    loaded, train = setting.loaded, setting.dataset.train
    part = take_rows(train, rows)
    batch = loaded.config.training.batch_size
    if batch > part.rows:
        reason = f"is larger than the {part.rows:,} examples that are left of all users"
        raise loaded.error(("training", "batch_size"), f"{batch:,} {reason}")
    return dataclasses.replace(setting, dataset=dataclasses.replace(setting.dataset, train=part))


def user_column(loaded: LoadedConfig) -> str | None:
    """Who a row belongs to, or None if labels are the units."""
    method = loaded.config.method
    return method.user_column if isinstance(method, UserLevel) else None


def users_digest(train: Part, column: str) -> str:
    """SHA-256 of who owns which row, which is public: it decides which rows take part."""
    return array_digest(owners_of(train, column))


def needed_columns(loaded: LoadedConfig) -> tuple[str, ...]:
    """The label column and, if users are protected, theirs."""
    users = user_column(loaded)
    return (loaded.config.data.label, *(() if users is None else (users,)))


def user_adjacency(examples: int) -> str:
    """What may change if all labels of a user are protected together."""
    return (
        f"replacing all labels of one user, of whose rows at most {examples:,} are used, chosen "
        "without looking at labels; features, who owns which row, and the number of rows are public"
    )


def kept_rows(groups: Groups) -> NDArray[np.int64]:
    """The rows that take part, in their order in the file."""
    return np.sort(groups.rows[groups.present])


def take_rows(part: Part, rows: NDArray[np.int64]) -> Part:
    """A part of so many rows."""
    columns = {name: taken(column, rows) for name, column in part.columns.items()}
    features = jax.tree.map(lambda leaf: leaf[rows], part.features)
    return dataclasses.replace(part, features=features, rows=len(rows), columns=columns)

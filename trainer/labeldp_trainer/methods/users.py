"""Which rows of a user take part, decided without a look at any label."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart, array_digest
from labeldp_trainer.data.owners import owner_codes
from labeldp_trainer.dp_gradient.sampling import UserRows, group_by_user
from labeldp_trainer.methods.method import Setting


def owners_of(loaded: LoadedConfig, train: DataPart) -> Int64[np.ndarray, " n"] | None:
    """[n] the number of the user who owns each row; None if labels are the units.

    Raises DataError.
    """
    column = loaded.config.user_column
    return None if column is None else owner_codes(train.columns[column], train.source, column)


def user_facts(setting: Setting) -> dict[str, str]:
    """For ``run.json``: a digest of the users, who are public and decide which rows take part."""
    owners = owners_of(setting.loaded, setting.dataset.train)
    return {} if owners is None else {"users_sha256": array_digest(owners)}


def user_groups(loaded: LoadedConfig, train: DataPart) -> UserRows | None:
    """Rows by user, at most so many each as the config says; None if labels are the units.

    The choice is a function of the public user column and the public seed. Raises DataError.
    """
    owners, most = owners_of(loaded, train), loaded.config.examples_per_user
    if owners is None or most is None:
        return None
    most = min(most, int(np.bincount(owners).max()))
    return group_by_user(owners, most, loaded.config.training.seed)


def used_rows(setting: Setting) -> NDArray[np.int64]:
    """The rows that take part, in their order in the file."""
    train = setting.dataset.train
    groups = user_groups(setting.loaded, train)
    return np.arange(train.rows) if groups is None else np.sort(groups.rows[groups.present])


def limited_to_users(setting: Setting) -> Setting:
    """Without the rows of a user beyond the most that are used. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    if loaded.config.user_column is None:
        return setting
    part = train.take(used_rows(setting))
    loaded.require_batch(part.rows, "examples that are left of all users")
    return dataclasses.replace(setting, dataset=dataclasses.replace(setting.dataset, train=part))

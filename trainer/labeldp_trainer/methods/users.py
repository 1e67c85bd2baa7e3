"""Chooses the rows of each user that take part, without reading labels."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int64
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart, array_digest
from labeldp_trainer.data.labels import owner_codes
from labeldp_trainer.methods.method import Setting


class UserRows(NamedTuple):
    """`rows` into the data, by user and example, and which of them are `present`."""

    rows: Int64[np.ndarray, "u e"]
    present: Bool[np.ndarray, "u e"]


def rows_of_users(owners: Int[np.ndarray, " n"], max_examples: int, seed: int) -> UserRows:
    """Rows by user, at most `max_examples` each, chosen at random without looking at any
    label.

    owners: the numbers 0 … u − 1 of the users, each of whom has a row (`data/labels.py`). There are
    `max_examples` slots a user; one that is not present repeats one of the user's rows. Users are
    in the order of their numbers.
    """
    if max_examples < 1:
        raise ValueError(f"max_examples must be at least 1; it is {max_examples}")
    counts = np.bincount(owners)
    if not counts.all():
        raise ValueError("a user between 0 and the largest number has no row")
    shuffled = np.random.default_rng(seed).permutation(len(owners))
    order = shuffled[np.argsort(owners[shuffled], kind="stable")]
    first = np.cumsum(counts) - counts
    slot = np.arange(max_examples)[None, :]
    present = slot < counts[:, None]
    return UserRows(order[first[:, None] + np.where(present, slot, 0)], present)


def owners_of(loaded: LoadedConfig, train: DataPart) -> Int64[np.ndarray, " n"] | None:
    """The number of the user of each row, [n]; None if each label is protected on its own.

    Raises DataError.
    """
    column = loaded.config.user_column
    return None if column is None else owner_codes(train.columns[column], train.source, column)


def user_facts(setting: Setting) -> dict[str, str]:
    """For ``run.json``: a digest of the users, who are public and decide which rows take part."""
    owners = owners_of(setting.loaded, setting.dataset.train)
    return {} if owners is None else {"users_sha256": array_digest(owners)}


def user_rows(loaded: LoadedConfig, train: DataPart) -> UserRows | None:
    """Rows by user, limited as the config says; None if each label is protected on its own.

    The choice is a function of the public user column and the public seed. Raises DataError.
    """
    owners, most = owners_of(loaded, train), loaded.config.examples_per_user
    if owners is None or most is None:
        return None
    most = min(most, int(np.bincount(owners).max()))
    return rows_of_users(owners, most, loaded.config.training.seed)


def used_rows(setting: Setting) -> NDArray[np.int64]:
    """The rows that take part, in their order in the file."""
    train = setting.dataset.train
    own = user_rows(setting.loaded, train)
    return np.arange(train.rows) if own is None else np.sort(own.rows[own.present])


def limited_to_users(setting: Setting) -> Setting:
    """The setting with at most the allowed rows of each user. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    if loaded.config.user_column is None:
        return setting
    part = train.take(used_rows(setting))
    loaded.require_batch(part.rows, "examples that remain after limiting rows per user")
    return dataclasses.replace(setting, dataset=dataclasses.replace(setting.dataset, train=part))

"""Doubts whether a table's labels were read as they were meant.

They come from the stated form of the table and from the noisy prior, which are public, and never
from the labels.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify.forms import CategoricalDomain, RealDomain, columns_of, missing_label

from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, UniformPrior

MUCH = 0.9  # of the prior where labels count that cannot be read


def form_doubts(spec: Spec) -> list[str]:
    """A line where labels may have decimal commas, before anything is read."""
    if isinstance(spec.prior, UniformPrior) or all(
        isinstance(domain, CategoricalDomain) for domain in columns_of(spec.domain)
    ):
        return []
    return spec.prior.form.comma_warning()


def prior_doubts(spec: Spec, prior: Prior, directory: Path) -> list[str]:
    """A line for each label column of a text table whose noisy prior is nearly all at the label
    that cells have which cannot be read."""
    from labeldp_compile.tabular.formats import files_of, format_of  # noqa: PLC0415

    if not isinstance(spec.prior, PrivatePrior) or not prior.epsilon_prior:
        return []
    form = format_of(files_of(directory / spec.prior.data)[0])
    if form is None or not form.is_text:
        return []
    columns = columns_of(spec.domain)
    weights = np.array(prior.weights, float).reshape([column.size for column in columns])
    lines = []
    for axis, (name, column) in enumerate(zip(spec.label.names, columns, strict=True)):
        others = tuple(other for other in range(len(columns)) if other != axis)
        shares = weights.sum(axis=others) / weights.sum()
        label = missing_label(column)
        if isinstance(column, RealDomain):
            place = column.index(float(label))
        else:
            listed: list[Any] = list(column.listed)
            place = listed.index(label)
        # Labels that were counted in one cell have the same weight.
        edges = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), len(shares)]
        cell = next(slice(a, b) for a, b in itertools.pairwise(edges) if a <= place < b)
        share = float(shares[cell].sum())
        if share >= MUCH and 2 * (cell.stop - cell.start) <= len(shares):
            lines.append(
                f"{name!r}: {math.floor(100 * share)}% of the noisy prior is at {label}, where all "
                "cells count that cannot be read: if you expected other labels, check the decimal "
                "mark, the spelling and the encoding of the column (docs/tables.md)"
            )
    return lines

"""Read a YAML file into a validated spec, or into errors; and the JSON Schema for editors.

A grid from public numbers is read when the spec is. Its file is never the label's data.

Which mechanism serves which domain and loss stands here and in the table of docs/spec.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.forms import (
    CategoricalDomain,
    Groups,
    IntegerDomain,
    RealDomain,
    check_groups,
)

from labeldp_compile.errors import InputError, SpecError, refused
from labeldp_compile.ledger_url import why_refused
from labeldp_compile.mechanisms import mechanism_class
from labeldp_compile.mechanisms.subset_selection import beats_randomized_response
from labeldp_compile.project import Project, find_project
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec.label import GridDomainSpec, JointLabelSpec, QuantileGrid, RealDomainSpec
from labeldp_compile.spec.loss import LossFile
from labeldp_compile.spec.model import Auto, PrivatePrior, PublicPrior, Spec, UniformPrior
from labeldp_compile.tabular.formats import is_among
from labeldp_compile.yaml_model import Document

if TYPE_CHECKING:
    from labeldp_compile.spec.label import LabelSpec


def _reasons(domain: str, loss: str, mechanism: str, lowest: float | None) -> list[str]:
    """Why a combination cannot be compiled; ``lowest`` is the lowest label, None of categories."""
    wanted = mechanism_class(mechanism)
    asked, joint = LOSSES[loss], domain == "joint"
    if joint and not wanted.joins:  # other problems have the same cause
        return [_FOR_ONE_COLUMN.format(mechanism)]
    reasons = {
        "the loss of a joint label must be zero_one (1 if any column differs) or sum (of the "
        "losses of its columns)": joint and not (asked.equality or loss == "sum"),
        "the loss sum is only for a joint label, whose columns each have a loss": (
            not joint and loss == "sum"
        ),
        f"{mechanism} needs ordered labels, but categories have no order: use kind: auto": (
            domain == "categorical" and wanted.needs_order
        ),
        f"the {loss} loss needs numbers: for categories use loss: zero_one": (
            domain == "categorical" and asked.needs_numbers
        ),
        f"the {loss} loss compares labels for equality, so it is not for real labels": (
            domain == "real" and asked.equality
        ),
        f"{mechanism} can answer with what is no label and has no cost: use least_cost, or kind: "
        "auto": asked.costs is not None and wanted.answers != "labels",
        "least_cost needs loss: {matrix: FILE} or {tree: FILE}: for others use kind: auto": (
            mechanism == "least_cost" and asked.costs is None
        ),
        f"{mechanism} needs a loss that grows with the distance: "
        "use kind: auto, or loss: squared or absolute": (asked.equality and not wanted.may_keep),
        f"{mechanism} returns sets of labels, which have no distance to a label: use loss: "
        "zero_one, or kind: auto": wanted.answers == "sets" and not asked.equality,
        f"the {loss} loss is defined for labels of at least 0": (
            asked.positive and lowest is not None and lowest < 0
        ),
        f"the {loss} loss needs positive outputs, but {mechanism} can return others: "
        "use rr_on_bins": asked.positive and wanted.answers == "anywhere",
        f"the {loss} loss is infinite if the output for a positive label is 0, "
        f"which {mechanism} can return: use rr_on_bins, or a domain without 0": (
            asked.positive and lowest == 0 and wanted.answers == "labels"
        ),
    }
    return [reason for reason, applies in reasons.items() if applies]


_FOR_ONE_COLUMN = (
    "{} is for labels of one column: for several columns use randomized_response, rr_top_k or "
    "rr_with_prior, or subset_selection with loss: zero_one"
)

Misfit = tuple[tuple[str | int, ...], str]
"""A key, and why its value does not fit the rest of the spec."""


def check_validity(spec: Spec) -> list[Misfit]:
    """Where the parts of a spec with a named mechanism do not fit together."""
    domain = spec.domain
    lowest = None if isinstance(domain, CategoricalDomain) else float(domain.min)
    kind = RealDomain.kind if isinstance(domain, RealDomain) else domain.kind
    reasons = _reasons(kind, spec.loss, spec.mechanism.kind, lowest)
    found: list[Misfit] = [
        (("loss",) if reason.startswith("the ") else ("mechanism", "kind"), reason)
        for reason in reasons
    ]
    # Options are checked only if the mechanism itself fits.
    return [
        *(found or _check_options(spec)),
        *_check_columns(spec),
        *_check_budget(spec),
        *_check_groups(spec),
    ]


def _check_columns(spec: Spec) -> Iterator[Misfit]:
    """The losses of the columns of a joint label: only ``loss: sum`` needs them."""
    if not isinstance(spec.label, JointLabelSpec):
        return
    for i, column in enumerate(spec.label.columns):
        where = "label", "columns", i
        if spec.loss == "sum" and column.loss is None:
            yield where, "loss: sum needs a loss for each column: add loss: squared, or another"
        if LOSSES[spec.loss].equality:
            for key in ("loss", "weight"):
                if getattr(column, key) is not None:
                    yield (*where, key), "is only for loss: sum, which adds the columns' losses"


def _check_budget(spec: Spec) -> Iterator[Misfit]:
    """The prior and what is spent on it, for every mechanism."""
    yield from _check_prior(spec)
    yield from _check_person(spec)
    split = spec.privacy.split
    if not isinstance(split, str):
        free = isinstance(spec.prior, PublicPrior | UniformPrior)
        if free and split.prior != 0:
            reason = f"a {spec.prior.kind} prior spends nothing: give all of ε to the label"
            yield ("privacy", "split", "prior"), reason
        if not free and split.prior == 0:
            reason = "a private prior needs a part of ε: use split: auto, or prior: {kind: uniform}"
            yield ("privacy", "split", "prior"), reason


def _check_prior(spec: Spec) -> Iterator[Misfit]:
    """Whether the prior fits the label."""
    if isinstance(spec.prior, PublicPrior) and spec.prior.weights is not None:
        given, labels = len(spec.prior.weights), spec.domain.size
        if given != labels:
            yield ("prior", "weights"), f"expected {labels} weights, one per label, got {given}"
    if isinstance(spec.prior, PrivatePrior):
        if spec.prior.counts in spec.label.names:
            yield ("prior", "counts"), "the label column cannot hold the counts"
        yield from _check_ledger(spec.prior, spec.privacy.ledger)


def _check_person(spec: Spec) -> Iterator[Misfit]:
    """The column of persons: it must be another than the label, and be in the prior's data."""
    person, prior = spec.privacy.person, spec.prior
    if person is None:
        return
    if is_among(person.column, spec.label.names):
        reason = "the label cannot name the person: the column of persons is public"
        yield ("privacy", "person_column"), reason
    if isinstance(prior, PrivatePrior) and prior.counts is not None:
        yield (
            ("prior", "counts"),
            "a histogram does not say which labels are of one person: with unit: person, give the "
            "table of rows",
        )


def _check_ledger(prior: PrivatePrior, ledger: str | None) -> Iterator[Misfit]:
    """A ledger identifies data by their declared names, which are only for a ledger."""
    for key in ("data_set", "data_version"):
        named = getattr(prior, key) is not None
        if ledger is not None and not named:
            yield ("prior",), f"a ledger needs {key}: NAME beside data"
        if ledger is None and named:
            yield ("prior", key), "is only for a budget ledger: add privacy.ledger, or remove this"
    if ledger is not None and (reason := why_refused(ledger)) is not None:
        yield ("privacy", "ledger"), reason


def _check_groups(spec: Spec) -> Iterator[Misfit]:
    """The columns of groups, as far as they can be checked without a file."""
    if spec.groups is None:
        return
    names, prior = spec.groups.names(), spec.prior
    if any(is_among(name, spec.label.names) for name in names):
        yield ("groups",), "the label cannot be its own group: the table would disclose the label"
    yield from _check_assign(spec)
    if isinstance(prior, PrivatePrior) and prior.counts in names:
        yield ("groups",), f"{prior.counts} is the column of counts"
    if isinstance(prior, UniformPrior) or (isinstance(prior, PublicPrior) and prior.data is None):
        reason = "groups need a prior from data, private or public, because their priors differ"
        yield ("groups",), reason
    if spec.named_mechanism.form != "window":
        yield (
            ("groups",),
            f"{spec.named_mechanism.title} has one table for all rows: for groups use another "
            "mechanism, such as randomized_response",
        )
    if spec.groups.assign is None:
        try:
            check_groups(Groups.each(*spec.groups.to_columns()))
        except ValueError as error:
            yield ("groups",), str(error)


def _check_assign(spec: Spec) -> Iterator[Misfit]:
    """The columns of the file that assigns groups. Whether it contains labels is not checked: the
    answer would disclose labels.
    """
    assign = None if spec.groups is None else spec.groups.assign
    if assign is None:
        return
    for key, name in (("key", assign.key), ("group", assign.group)):
        if is_among(name, spec.label.names):
            reason = f"{name!r} is the label: groups are public and would disclose the label"
            yield ("groups", "assign", key), reason
    if assign.key == assign.group:
        yield ("groups", "assign"), "key and group must be two different columns"


def _check_options(spec: Spec) -> Iterator[Misfit]:
    """The options of the mechanism that must fit other parts of the spec."""
    mechanism = spec.named_mechanism
    misfit = mechanism.misfit(spec.domain.size, spec.loss)
    if misfit is not None:
        key, reason = misfit
        yield ("mechanism", *key), reason
    if isinstance(spec.label, JointLabelSpec):
        return
    if isinstance(spec.label.domain, GridDomainSpec) and mechanism.form == "additive":
        reason = (
            "adds noise in even steps, but the points of this grid are not evenly spaced: use "
            "optimal_unbiased, rr_on_bins or randomized_response, or points: N without grid"
        )
        yield ("mechanism", "kind"), f"{mechanism.kind} {reason}"
    if not isinstance(spec.label.domain, RealDomainSpec | GridDomainSpec):
        return
    if spec.label.domain.rounding == "nearest" and mechanism.is_unbiased:
        reason = "rounding to the nearest point is biased: remove it, or use rounding: unbiased"
        yield ("label", "domain", "rounding"), reason


def resolved(spec: Spec) -> tuple[Spec, list[Misfit]]:
    """The spec with a named mechanism, and what does not fit."""
    if isinstance(spec.mechanism, Auto):
        kind, reason = _choose(spec)
        why = f"loss: {spec.stated_loss}, goal: {spec.goal}: {reason}"
        spec = spec.with_mechanism(mechanism_class(kind).named(), why)
    return spec, check_validity(spec)


def _choose(spec: Spec) -> tuple[str, str]:
    """The kind of mechanism that ``auto`` chooses, and why."""
    if spec.goal == "training" and LOSSES[spec.loss].equality and spec.groups is None:
        split = (
            spec.privacy.split_of_label
        )  # auto and paper give all of ε to the label: sets need no prior
        epsilon = spec.privacy.per_label if isinstance(split, str) else split[1]
        if beats_randomized_response(spec.domain.size, epsilon):
            return _SETS
    if spec.goal == "training" or LOSSES[spec.loss].costs is not None:
        return LOSSES["sum" if isinstance(spec.label, JointLabelSpec) else spec.loss].training
    if isinstance(spec.label, JointLabelSpec) or LOSSES[spec.loss].equality:
        what = "combination" if isinstance(spec.label, JointLabelSpec) else "label"
        return "rr_with_prior", (
            f"rr_with_prior keeps a {what} unchanged as often as any ε-DP randomizer can"
        )
    return "rr_on_bins", "rr_on_bins has the least noisy label loss of all ε-DP randomizers"


_SETS = (
    "subset_selection",
    "subset_selection answers with sets of labels, which at this ε say more of the shares, and "
    "teach a model more, than one label each; the best sets say the most that any ε-DP answer can",
)


MAX_NUMBERS = 10_000_000  # of a public column, which are sorted in memory


def read_public_grids(spec: Spec, directory: Path | None) -> None:
    """Fill in the points of grids from public files, whose paths are relative to ``directory``.

    Raises DataError if a file cannot be read, has no numbers, or is the label's data.
    """
    for column in spec.label.each:
        domain = column.domain
        if isinstance(domain, GridDomainSpec) and isinstance(domain.grid, QuantileGrid):
            if directory is None:
                raise InputError("grid: quantile-of-public needs a spec that is a file")
            _fill(spec, column, domain, domain.grid, directory)


def _fill(
    spec: Spec, column: LabelSpec, domain: GridDomainSpec, grid: QuantileGrid, directory: Path
) -> None:
    path = directory / grid.data
    refuse_label_data(spec, directory, path, "a grid is public, so grid.data needs a public file")
    if path.exists() and grid.column == column.column:
        # The name alone decides; the contents are not compared, for that would disclose labels.
        raise refused(
            path,
            f"grid.column is {grid.column!r}, the name of the label: quantiles of the labels would "
            "leak them. Use a public column with another name",
        )
    numbers = sorted(_numbers(path, grid))
    if not numbers:
        raise refused(path, f"{grid.column!r} has no numbers to take quantiles of")
    grid.found(numbers, *domain.ends)
    try:
        domain.require_faithful()
    except ValueError as error:
        raise refused(path, str(error)) from None


def refuse_label_data(spec: Spec, directory: Path, path: Path, why: str) -> None:
    """Raise DataError if a public file is the label's data, or a part of them.

    The files on the disk are compared, so links are followed. Contents are not compared: a refusal
    would disclose that labels are equal to what is public.
    """
    from labeldp_compile.tabular.formats import files_of  # noqa: PLC0415  # Arrow

    prior = spec.prior
    data = prior.data if isinstance(prior, PrivatePrior | PublicPrior) else None
    if data is None or not path.exists() or not (directory / data).exists():
        return  # a missing file is refused when it is read
    theirs = [directory / data, *files_of(directory / data)]
    mine = [path, *files_of(path)] if path.is_dir() else [path]
    if any(own.samefile(other) for own in mine for other in theirs):
        names = ", ".join(map(repr, spec.label.names))
        raise refused(path, f"is the data of the label {names}: {why}")


def _numbers(path: Path, grid: QuantileGrid) -> Iterator[float]:
    """The finite numbers of the public column."""
    import numpy as np  # noqa: PLC0415  # and Arrow: only where a grid needs them

    from labeldp_compile.tabular.columns import number_array  # noqa: PLC0415
    from labeldp_compile.tabular.formats import files_of  # noqa: PLC0415
    from labeldp_compile.tabular.reader import read_columns  # noqa: PLC0415

    count = 0
    for part in files_of(path):
        for batch in read_columns(
            part, [grid.column], grid.form, [grid.column], numbers=[grid.column]
        ):
            numbers = number_array(path, grid.column, batch.column(grid.column))
            count += len(numbers)
            if count > MAX_NUMBERS:
                raise refused(path, f"has more than {MAX_NUMBERS:,} rows: use a sample of them")
            yield from numbers[np.isfinite(numbers)].tolist()


_SPEC = Document("spec", Spec, SpecError)


def load_spec(path: Path) -> tuple[Spec, bytes]:
    """Read and validate a spec file; returns it with its bytes (for the digest).

    Raises SpecError with the file, line and key of every error: the first is its message, the
    others are its notes.
    """
    text, data = _SPEC.read(path)
    return parse_spec(text, str(path), path.parent), data


def parse_spec(text: str, source: str = "spec", directory: Path | None = None) -> Spec:
    """Validate the text of a spec; ``source`` names it in errors.

    Paths of public grids are relative to ``directory``; without one, such a grid is refused. A
    project file there completes the spec.
    """
    spec, yaml = _SPEC.parse(text, source)
    project = None if directory is None else find_project(directory)
    if project is not None and project.keys.ledger is not None:
        spec, found = _in_project(spec, project)
        if found:
            raise _SPEC.refusal(source, yaml, found)
    read_public_grids(spec, directory)
    if isinstance(spec.loss, LossFile):
        domain = spec.domain
        if not isinstance(domain, CategoricalDomain | IntegerDomain):
            wrong = "costs are for categories or integers, in one column: use another loss"
            raise _SPEC.refusal(source, yaml, [(("loss",), wrong)])
        if directory is None:
            raise InputError("a loss with a file of costs needs a spec that is a file")
        why = "costs are public, so they need a file of their own"
        refuse_label_data(spec, directory, directory / spec.loss.path, why)
        spec = spec.with_costs(spec.loss.read(directory, domain.listed))
    spec, found = resolved(spec)
    if found:
        raise _SPEC.refusal(source, yaml, found)
    return spec


def _in_project(spec: Spec, project: Project) -> tuple[Spec, list[Misfit]]:
    """The spec with the ledger of the project file beside it, and where the two differ."""
    privacy, prior, folder = spec.privacy, spec.prior, project.path.parent
    stated: list[tuple[str, str, str | None]] = [("privacy", "ledger", privacy.ledger)]
    if isinstance(prior, PrivatePrior):
        names = {key: getattr(project.keys, key) for key in ("data_set", "data_version")}
        stated += [("prior", key, getattr(prior, key)) for key in names]
        prior = prior.model_copy(update=names)
    wrong = [((part, key), project.misfit(key, value, folder)) for part, key, value in stated]
    privacy = privacy.model_copy(update={"ledger": project.keys.ledger})
    spec = spec.model_copy(update={"privacy": privacy, "prior": prior})
    return spec, [(key, reason) for key, reason in wrong if reason is not None]


def json_schema() -> str:
    """The schema as indented JSON, with a final newline; the same for the same models."""
    return _SPEC.json_schema("labeldp spec")

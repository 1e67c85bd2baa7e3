"""Read a YAML file into a validated spec, or into errors; and the JSON Schema for editors.

A grid from public numbers is read when the spec is. Its file is never the label's data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_compile.errors import InputError, SpecError, refused
from labeldp_compile.spec.grid import GridDomainSpec, QuantileGrid
from labeldp_compile.spec.model import PrivatePrior, PublicPrior, Spec
from labeldp_compile.spec.validity import resolved
from labeldp_compile.yaml_model import Document

if TYPE_CHECKING:
    from labeldp_compile.spec.label import LabelSpec


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

    Paths of public grids are relative to ``directory``; without one, such a grid is refused.
    """
    spec, yaml = _SPEC.parse(text, source)
    read_public_grids(spec, directory)
    spec, found = resolved(spec)
    if found:
        raise _SPEC.refusal(source, yaml, found)
    return spec


def json_schema() -> str:
    """The schema as indented JSON, with a final newline; the same for the same models."""
    return _SPEC.json_schema("labeldp spec")

"""From a file to what it holds, for commands that ask about it; every file is verified first."""

import re
from dataclasses import replace
from pathlib import Path

from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.budget import DEFAULT_BUDGET, Budget, naming
from labeldp_verify.console.verification import check_bytes, read_artifact
from labeldp_verify.errors import InputError
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Groups, JointDomain, sets_of
from labeldp_verify.reading.numerals import read_decimal, read_whole


def open_artifact(path: Path, budget: Budget = DEFAULT_BUDGET) -> Artifact:
    """The artifact of a file.

    Raises InputError if the file cannot be read (TooLargeError if verifying it would exceed the
    budget), and VerificationError if a check fails.
    """
    data = read_artifact(path)
    with naming(path):
        return check_bytes(data, budget=budget).verified()


def table_of(artifact: Artifact, path: Path, group: str | None) -> Table:
    """The only table, or that of a group as it was typed: ``other``, or a value of each column.

    Values of several columns are separated by commas, with ``\\,`` for a comma inside; a number
    selects its band. Raises InputError for a value that is not listed, and for a group that is
    missing or not needed.
    """
    if not artifact.groups.columns:
        if group is not None:
            raise InputError(f"{path}: has one table for all rows: leave out --group")
        return artifact.table(0)
    if group is None:
        how = _how(artifact.groups)
        raise InputError(f"{path}: has a table for each group: say which, {how}")
    return artifact.table(find_table(artifact.groups, group))


def find_table(groups: Groups, text: str) -> int:
    """The number of the table of a group as it was typed, as in ``table_of``."""
    if text == "other":
        return groups.own_tables
    parts = [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]
    if len(groups.columns) == 1:
        parts = [text]
    row = []
    for column, part in zip(groups.columns, parts, strict=False):
        try:
            value = (
                part
                if column.is_text
                else read_whole(part)
                if column.values
                else float(read_decimal(part))
            )
        except ValueError:
            break
        if column.place(value) is None:
            break
        row.append(value)
    if len(row) != len(groups.columns) or len(parts) != len(row):
        raise InputError(f"--group {text}: is not listed; {_how(groups)}")
    return groups.table(row)


def _how(groups: Groups) -> str:
    names = ",".join(column.name.upper() for column in groups.columns)
    return f"as in --group {names}, or --group other for all rows that are not listed"


def readable(table: Table) -> Table:
    """The same with the combinations of a joint label by their names, as text categories."""
    domain, randomizer = table.domain, table.randomizer
    if not isinstance(domain, JointDomain):
        return table
    names = [domain.name(number) for number in domain.values]
    if sets_of(randomizer) is None and not isinstance(randomizer, AdditiveRandomizer):
        outputs = tuple(names[int(number)] for number in randomizer.values)
        randomizer = replace(randomizer, values=outputs)
    named = CategoricalDomain(tuple(names), names[int(domain.default)])
    return replace(table, domain=named, randomizer=randomizer)

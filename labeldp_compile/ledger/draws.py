"""Labels that are drawn, in the ledger: booked before an output is visible, and added up.

An entry is about one output, or one part of a folder. Under one key, context and version the same
output is booked once, however often its run is repeated; more rows of it are a new entry, and the
largest counts. Without a key every run draws again, and every run is booked.

A row's labels in a folder are drawn once, by one of its artifacts, so a row spends the largest ε of
them. Everything else adds up. A person may have rows in all parts, so for a person every artifact
of a folder adds up, but its parts do not: the rows of a person are counted over all of them. What
is outside of the folder adds up, for it may have as many rows of a person again.

A name alone does not say what was drawn: the digest does, which only the drawing key gives. It is
of a part's bytes in a folder, and elsewhere of the ids, if the unit is a person. A folder has one
history (``draw_account``). A part that is booked with two digests has two, which add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, Literal

from labeldp_compile.ledger.account import DataSet
from labeldp_compile.ledger.entries import Entry

Unit = Literal["label", "person"]
_DRAW = ("column", "artifact_sha256", "key", "context", "version")
OUTPUT = (*_DRAW, "data_set", "unit", "epsilon", "epsilon_label", "folder", "part", "digest")


@dataclass(frozen=True)
class Draw:
    """One output, or one part of a folder.

    Attributes:
        data_set: whose total it adds to.
        column: the label columns, as ``key_of`` names them.
        artifact_sha256: of the artifact that draws.
        key, context, version: what the draw is bound to; empty, empty and 0 without a key.
        unit, epsilon: whose ε this is, exactly, for all that the artifact draws of one unit.
        epsilon_label: of one label.
        folder, part: the folder by the name in its manifest ("" if it is none), and the output.
        digest: 16 hexadecimal digits for what was drawn; empty where the name says enough.
        note: who, and why.
    """

    data_set: str
    column: str
    artifact_sha256: str
    key: str
    context: str
    version: int
    unit: Unit
    epsilon: Fraction
    epsilon_label: Fraction
    folder: str
    part: str
    digest: str = ""
    note: str = ""

    def facts(self) -> dict[str, Any]:
        """As the ledger keeps them."""
        exact = {"epsilon": str(self.epsilon), "epsilon_label": str(self.epsilon_label)}
        return {**asdict(self), **exact}


@dataclass(frozen=True)
class Totals:
    """ε of one data set, of priors, metrics and labels that were drawn.

    Attributes:
        row: what one row's labels have spent at most.
        person: what all labels of one person have spent; None if an entry counts no persons.
    """

    row: Fraction
    person: Fraction | None

    @classmethod
    def of(cls, spent: DataSet | None, drawn: DrawnLabels | None) -> Totals:
        """The sums of what a data set has of both."""
        spent, drawn = spent or DataSet(Fraction(0)), drawn or DrawnLabels()
        counts_persons = drawn.person is not None and not spent.of_labels
        person = spent.spent + (drawn.person or 0) if counts_persons else None
        return cls(spent.spent + drawn.row, person)


@dataclass
class DrawnLabels:
    """What was drawn of a data set.

    Attributes:
        rows: private labels, of all outputs.
        row: ε that one row's labels have spent at most, in all columns.
        person: ε that all labels of one person have spent; None if an artifact counts no persons.
    """

    rows: int = 0
    row: Fraction = Fraction(0)
    person: Fraction | None = Fraction(0)
    outputs: dict[tuple[Any, ...], int] = field(default_factory=dict, repr=False)


def drawn_labels(entries: Sequence[Entry]) -> dict[str, DrawnLabels]:
    """The totals of every data set of which labels were drawn, by name."""
    found: dict[str, DrawnLabels] = {}
    rows: dict[tuple[Any, ...], Fraction] = {}
    persons: dict[tuple[Any, ...], Fraction] = {}
    units: dict[str, set[str]] = {}
    first: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.kind != "draw":
            continue
        facts = entry.facts
        name, own = facts["data_set"], [] if facts["key"] else [entry.number]
        drawn = found.setdefault(name, DrawnLabels())
        output = (*(facts[key] for key in OUTPUT), *own)
        drawn.outputs[output] = max(drawn.outputs.get(output, 0), facts["rows"])
        draw = (*(facts[key] for key in _DRAW), *own)
        folder = facts["folder"]
        if folder and first.setdefault((folder, facts["part"]), facts["digest"]) != facts["digest"]:
            folder += facts["digest"]
        once = (folder, facts["column"]) if folder else draw
        label = Fraction(facts["epsilon_label"])
        rows[name, once] = max(rows.get((name, once), Fraction(0)), label)
        counted = (
            *draw,
            folder or (facts["part"], facts["digest"]),
        )  # in which rows are counted together
        persons[name, counted] = Fraction(facts["epsilon"])
        units.setdefault(name, set()).add(facts["unit"])
    for name, drawn in found.items():
        drawn.rows = sum(drawn.outputs.values())
        drawn.row = sum((e for (own, _), e in rows.items() if own == name), Fraction(0))
        of_person = sum((e for (own, _), e in persons.items() if own == name), Fraction(0))
        drawn.person = of_person if units[name] == {"person"} else None
    return found

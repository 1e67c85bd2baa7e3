"""Two verified artifacts, fact by fact. Every ε is compared exactly."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import columns_of, sets_of
from labeldp_verify.graph import canonical_json
from labeldp_verify.rounded import at_most
from labeldp_verify.usefulness.estimates import is_unbiased
from labeldp_verify.usefulness.figures import ROWS

from labeldp_compile.check.subject import Subject, of_artifact
from labeldp_compile.diff.change import Change, Differences

_WORSE = "the promise is weaker"
_OFF = "private labels are off by more on average"
_OTHERWISE = "labels are read in another way"
_OTHERS = "persons are told apart in another way"
_SHOWN = 6


def diff_artifacts(old: Artifact, new: Artifact) -> Differences:
    """What differs between two artifacts."""
    changes = list(_changes(old, new))
    digests = [one.certificate.digests.tables for one in (old, new)]
    again = "keyed outputs do not stay valid"
    changes += _texts("integers", [digest[:16] for digest in digests], again)
    return Differences("artifact", changes, "valid" if digests[0] == digests[1] else "not valid")


def _changes(old: Artifact, new: Artifact) -> Iterator[Change]:
    both, stated = (old, new), (old.certificate, new.certificate)
    a, b = (of_artifact(Path(), b"", one, with_use=False) for one in both)
    yield from _texts("name", (a.name, b.name), "gates that demand the name refuse it")
    yield from _larger("ε of a label (proved)", (a.label, b.label))
    yield from _larger("total ε (declared)", (a.total, b.total))
    yield from _persons(a, b)
    weaker = _WORSE if a.protects == "person" else None
    yield from _texts("protects each", (a.protects, b.protects), weaker)
    persons = [None if one is None else one.column for one in (c.person for c in stated)]
    if None not in persons:  # otherwise another unit is protected
        yield from _texts("persons are in", persons, _OTHERS)
    yield from _texts("mechanism", (a.mechanism, b.mechanism))
    columns = [", ".join(one.certificate.label_columns) for one in both]
    yield from _texts("label", columns, _OTHERWISE)
    domains = [canonical_json(one.label.to_json()) for one in both]
    if domains[0] != domains[1]:
        shown = [_domain(one) for one in both]
        yield from _texts("domain", shown if shown[0] != shown[1] else domains, _OTHERWISE)
    yield from _groups(old, new)
    yield from _outputs(old, new)
    yield from _larger("largest bias", [_bias(one) for one in both], _OFF)
    yield from _use(old, new)
    yield from _texts("prior", [one.certificate.prior.kind for one in both])
    yield from _texts("spec (digest)", [one.certificate.digests.spec[:16] for one in both])


def _texts(what: str, both: Sequence[str | None], breaks: str | None = None) -> Iterator[Change]:
    old, new = both
    if old != new:
        yield Change(what, old or "", new or "", breaks)


def _larger(what: str, both: Sequence[Fraction | None], breaks: str = _WORSE) -> Iterator[Change]:
    """A number that should not grow, or that should still be known."""
    old, new = both
    if old != new:
        grows = old is not None and (new is None or new > old)
        shown = ["" if one is None else at_most(one) for one in both]
        yield Change(what, shown[0], shown[1], breaks if grows else None)


def _persons(a: Subject, b: Subject) -> Iterator[Change]:
    """At each δ, what all labels of a person spend."""
    labels = [None if one.labels is None else Fraction(one.labels) for one in (a, b)]
    yield from _larger("labels of a person", labels)
    old, new = dict(a.person), dict(b.person)
    for delta in sorted({*old, *new}):
        at = f" at δ = {float(delta):g}" if delta else ""
        yield from _larger(f"ε of a person{at}", (old.get(delta), new.get(delta)))


def _domain(one: Artifact) -> str:
    parts = []
    for part in columns_of(one.label):
        facts = part.to_json()
        values = facts.get("values")
        if values is not None:
            more = ", …" if len(values) > _SHOWN else ""
            parts.append(f"{', '.join(map(str, values[:_SHOWN]))}{more}")
        else:
            points = f" on {facts['points']} points" if "points" in facts else ""
            parts.append(f"{facts['min']} … {facts['max']}{points}")
    return " × ".join(parts)


def _groups(old: Artifact, new: Artifact) -> Iterator[Change]:
    names, columns, tables, sizes = [], [], [], []
    for one in (old, new):
        names.append(", ".join(column.name for column in one.groups.columns))
        columns.append([column.to_json() for column in one.groups.columns])
        tables.append(f"{one.groups.tables:,}")
        smallest = min(table.size for table in one.certificate.tables)
        sizes.append(f"{smallest:,}" if one.groups.columns else None)
    yield from _texts("groups", names, "rows need other columns")
    if columns[0] != columns[1] and names[0] == names[1]:
        counts = [f"{one.groups.cells:,} groups" for one in (old, new)]
        yield Change("values of groups", counts[0], counts[1], "rows go to other groups")
    yield from _texts("tables", tables)
    yield from _texts("smallest table (rows)", sizes)


def _outputs(old: Artifact, new: Artifact) -> Iterator[Change]:
    """Whether a reader of the old outputs may meet one that it does not know."""
    kinds, values = [], []
    for one in (old, new):
        is_set = sets_of(one.tables[0]) is not None
        kinds.append("a set of labels" if is_set else "a label")
        listed = [getattr(table, "values", ()) for table in one.tables]
        values.append({value for some in listed for value in some})
    yield from _texts("an output is", kinds, "outputs mean something else")
    counts = [f"{one.certificate.outputs:,}" for one in (old, new)]
    unknown = len(values[1] - values[0])
    if unknown:
        yield Change("outputs", counts[0], counts[1], f"{unknown:,} outputs are new")
    else:
        yield from _texts("outputs", counts)


def _bias(one: Artifact) -> Fraction | None:
    """The bias of private labels; what only comes from rounding to whole counts is none."""
    found, stated = one.bias_in_range, one.certificate.utility.largest_bias
    if found is None:
        return None
    return Fraction(0) if is_unbiased(one.label, stated) else Fraction(found)


def _use(old: Artifact, new: Artifact) -> Iterator[Change]:
    shown = []
    for table in (old.only, new.only):
        margin = None if table is None else table.usefulness.margin(ROWS)
        shown.append("" if margin is None else f"±{at_most(margin, 3)}")
    lost = "nothing can be estimated any more" if old.only and new.only and not shown[1] else None
    yield from _texts(f"over {ROWS:,} rows", shown, lost)

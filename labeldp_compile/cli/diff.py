"""``labeldp diff``: the differences of two artifacts or specs, and which break a promise.

Every ε of artifacts is compared exactly. Specs are compared key by key, with defaults filled in and
``auto`` resolved.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import click
from labeldp_verify.artifact import Artifact
from labeldp_verify.budget import Budget, enforced
from labeldp_verify.forms import columns_of, sets_of
from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import Marked, at_most, clipped
from labeldp_verify.usefulness.estimates import is_unbiased
from labeldp_verify.usefulness.figures import ROWS

from labeldp_compile.check.subject import Subject, of_artifact
from labeldp_compile.cli.command import command, show, verified
from labeldp_compile.cli.options import PATH, budget_option, json_option, require_form
from labeldp_compile.errors import InputError
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior

FORMAT_VERSION = "1.0"
Keyed = Literal["valid", "not valid", "unknown"]
EQUAL, COMPATIBLE, BREAKING = 0, 3, 4
"""Exit codes of ``--detailed-exitcode``; 1 and 2 keep their meaning."""
_KEYED = {
    "valid": "keyed outputs stay valid: the integers are the same",
    "not valid": "keyed outputs do NOT stay valid: a label that OLD has drawn spends ε again",
    "unknown": "whether keyed outputs stay valid is known when NEW is compiled: its prior is drawn "
    "then, unless a ledger has it",
}
_COLUMNS = 40


@dataclass(frozen=True)
class Change:
    """One fact that differs.

    Attributes:
        what: the fact.
        old, new: as short texts; empty where there is none.
        breaks: what no longer holds; None if nothing breaks.
    """

    what: str
    old: str
    new: str
    breaks: str | None = None


@dataclass(frozen=True)
class Differences:
    """All differences of two things of one kind.

    Attributes:
        kind: ``artifact`` or ``spec``.
        changes: in a fixed order.
        keyed: whether outputs that were drawn with a key stay what they are.
    """

    kind: Literal["artifact", "spec"]
    changes: Sequence[Change]
    keyed: Keyed

    @property
    def breaking(self) -> bool:
        """Whether something that holds for the old one does not hold for the new one."""
        return any(one.breaks is not None for one in self.changes)

    @property
    def code(self) -> int:
        """The detailed exit code."""
        return BREAKING if self.breaking else COMPATIBLE if self.changes else EQUAL

    def to_json(self) -> dict[str, Any]:
        """``{format_version, kind, equal, breaking, keyed_outputs, changes}``."""
        return {
            "format_version": FORMAT_VERSION,
            "kind": self.kind,
            "equal": not self.changes,
            "breaking": self.breaking,
            "keyed_outputs": self.keyed,
            "changes": [asdict(one) for one in self.changes],
        }

    def in_words(self) -> list[str]:
        """Lines for people; the verdict is the last."""
        lines = []
        for one in self.changes:
            old, new = (clipped(text, _COLUMNS) or "–" for text in (one.old, one.new))
            mark = "breaking" if one.breaks else "changed "
            reason = f": {one.breaks}" if one.breaks else ""
            lines.append(f"{mark}  {one.what:<24} {old} → {new}{reason}")
        lines.append(_KEYED[self.keyed])
        count = sum(one.breaks is not None for one in self.changes)
        if not self.changes:
            lines.append(f"equal: the two {self.kind}s promise and do the same")
        elif count:
            lines.append(f"BREAKING: {count} of {len(self.changes)} changes")
        else:
            lines.append(f"compatible: {len(self.changes)} changes, none of them breaking")
        return lines


_WORSE = "the promise is weaker"
_OFF = "private labels are off by more on average"
_AGAIN = "keyed outputs do not stay valid"
_GROUPS = "rows go to other groups"
_NAME = "gates that demand the name refuse it"
_OTHERWISE = "labels are read in another way"
_OTHERS = "persons are told apart in another way"
_SHOWN = 6


def diff_artifacts(old: Artifact, new: Artifact) -> Differences:
    """The differences between two artifacts."""
    changes = list(_changes(old, new))
    digests = [one.certificate.digests.tables for one in (old, new)]
    changes += _texts("integers", [digest[:16] for digest in digests], _AGAIN)
    return Differences("artifact", changes, "valid" if digests[0] == digests[1] else "not valid")


def _changes(old: Artifact, new: Artifact) -> Iterator[Change]:
    both, stated = (old, new), (old.certificate, new.certificate)
    a, b = (of_artifact(Path(), b"", one, with_use=False) for one in both)
    yield from _texts("name", (a.name, b.name), _NAME)
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
        yield Change("values of groups", counts[0], counts[1], _GROUPS)
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


# Keys by their beginnings: what a change of them breaks. All others break keyed outputs, except
# those that are not in the integers.
_BREAKS = {
    "name": _NAME,
    "label.": _OTHERWISE,
    "groups": _GROUPS,
    "privacy.unit": "another unit is protected",
    "privacy.person_column": _OTHERS,
}
_MORE = (
    *("privacy.epsilon", "privacy.labels_per_user", "privacy.labels_per_person"),
    *("privacy.split.prior", "privacy.split.label"),
)
"""Fields that break the promise if they grow, or are no longer stated."""
_BOOKED = ("privacy.ledger", "prior.data_set", "prior.data_version")
"""Fields by which a ledger knows a prior."""
_NOT_IN_THE_INTEGERS = (
    *("version", "name", "goal", "privacy.labels_per_user", "privacy.person_column"),
    *_BOOKED,
)


def diff_specs(old: Spec, new: Spec) -> Differences:
    """The differences between two specs."""
    a, b = (dict(_flat(spec.model_dump(exclude_none=True))) for spec in (old, new))
    keys = [*a, *(key for key in b if key not in a)]
    differing = [key for key in keys if a.get(key) != b.get(key)]
    changes = [_change(key, a.get(key), b.get(key), new) for key in differing]
    decided = [key for key in differing if not key.startswith(_NOT_IN_THE_INTEGERS)]
    keyed: Keyed = "not valid" if decided else "valid"
    if not decided and isinstance(new.prior, PrivatePrior):
        keyed = "unknown"
    return Differences("spec", changes, keyed)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each scalar by its path; lists of scalars stay whole. An option that is off is left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for i, item in enumerate(value):
            yield from _flat(item, f"{path}.{i}")
    elif value is not False:
        yield path, value


def _change(key: str, old: Any, new: Any, spec: Spec) -> Change:
    breaks = next((why for start, why in _BREAKS.items() if key.startswith(start)), None)
    if key in _MORE and old is not None:
        is_more = new is None or Decimal(new) > Decimal(old)
        breaks = _WORSE if is_more else None
    if key in _BOOKED and old is not None and isinstance(spec.prior, PrivatePrior):
        breaks = "the ε of its prior is spent again"
        if key == "privacy.ledger" and new is None:
            breaks = "its prior is no longer booked"
    if key == "prior.kind" and (old, new) == ("private", "public"):
        breaks = "what was counted with noise is declared to be public"
    if breaks is None and not key.startswith(_NOT_IN_THE_INTEGERS):
        breaks = _AGAIN
    return Change(key, _shown(old), _shown(new), breaks)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


_SPECS = (".yaml", ".yml")


@command(
    "diff",
    "labeldp diff deployed/visits.onnx build/visits.onnx --detailed-exitcode",
    "labeldp diff old/visits.yaml visits.yaml",
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit with 0 if nothing differs, 3 if something does, 4 if a change is breaking.",
)
@json_option
@budget_option
def diff_command(
    old: Path, new: Path, detailed_exitcode: bool, as_json: bool, budget: Budget
) -> None:
    """Show how two artifacts or two specs differ, and which changes break a promise.

    Artifacts are verified first; exit code 1 if one does not verify. A change is breaking if the
    promise gets weaker, if labels or groups are read in another way, if outputs are new, or if a
    label that was drawn with a key would be drawn again. Nothing is spent.
    """
    kinds = {path.suffix.lower() in _SPECS for path in (old, new)}
    if len(kinds) > 1:
        raise InputError(f"{new}: compare two artifacts, or two specs (.yaml)")
    require_form("specs" if True in kinds else "artifacts", {"artifacts": ("budget",)})
    if kinds == {True}:
        from labeldp_compile.spec import load_spec  # noqa: PLC0415

        found = diff_specs(load_spec(old)[0], load_spec(new)[0])
    else:
        from labeldp_verify.opening import open_artifact  # noqa: PLC0415

        opened = []
        for path in (old, new):
            with enforced(budget), verified(path):
                opened.append(open_artifact(path, budget))
        found = diff_artifacts(*opened)
    *lines, verdict = found.in_words()
    last = Marked(verdict, "failed" if found.breaking else "ok")
    show(as_json, found.to_json, lambda: [*lines, last])
    sys.exit(found.code if detailed_exitcode else 0)

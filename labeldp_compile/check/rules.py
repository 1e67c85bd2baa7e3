"""The rules of a policy: each key, the things that it is about, and when they meet it.

Every ε and δ is a fraction here. A policy's limits are exact decimals; an artifact's bounds are
those that its integers prove.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from labeldp_verify.claims import PrivatePriorClaims
from labeldp_verify.printable import at_most, one_line

from labeldp_compile.check.policy import LeastUse, LoadedPolicy
from labeldp_compile.check.subject import Kind, Subject, Worth
from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import is_url

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey

    from labeldp_compile.ledger.book import DataSet, DrawnLabels, Totals
    from labeldp_compile.ledger.entries import Entry

OPEN = "open"
"""``found`` of a rule that only the compiled file can decide."""


@dataclass(frozen=True)
class PolicyFinding:
    """One rule, and whether a file meets it.

    Attributes:
        rule: the key of the policy, or ``verified``.
        ok: whether it is met.
        worth: what ``found`` is worth: proved, declared, estimated or counted.
        text: one sentence, printable.
        found, limit: the two sides of the comparison as short texts; empty where there are none.
    """

    rule: str
    ok: bool
    worth: Worth
    text: str
    found: str = ""
    limit: str = ""

    def __post_init__(self) -> None:
        """Make the texts printable: they may quote the file."""
        for name in ("text", "found", "limit"):
            object.__setattr__(self, name, one_line(getattr(self, name)))


Verdict = tuple[bool, Worth, str] | tuple[bool, Worth, str, str, str]
"""All of a finding but its rule."""
Rule = Callable[[Subject, Any, LoadedPolicy], Iterator[Verdict]]
_MADE: tuple[Kind, ...] = ("artifact", "plan")
_SPENDS: tuple[Kind, ...] = (*_MADE, "training run")
_BOOKS: tuple[Kind, ...] = ("ledger", "plan")
RULES: dict[str, tuple[tuple[Kind, ...], Rule]] = {}
"""By key: what it is about, and the verdicts on a subject, given the value of the key."""


def _rule(key: str, *kinds: Kind) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        RULES[key] = kinds, rule
        return rule

    return add


def findings(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """A finding for each key of the policy that is about such a thing.

    Every policy demands of a training run that it is private, with an allowed δ.
    """
    if one.kind == "training run" and one.label is None:
        text = "it promises no privacy at all: it was trained on true labels"
        yield PolicyFinding("private", False, "declared", text)
    elif one.kind == "training run":
        limit, delta = policy.rules.max_delta, f"{float(one.delta):.6g}"
        text = f"the run spends δ = {delta} (declared); the policy allows {limit}"
        ok = one.delta <= Fraction(limit)
        yield PolicyFinding("max_delta", ok, "declared", text, delta, str(limit))
    for key in policy.rules.stated:
        kinds, rule = RULES[key]
        if one.kind in kinds:
            for verdict in rule(one, getattr(policy.rules, key), policy):
                yield PolicyFinding(key, *verdict)


def not_applied(policy: LoadedPolicy, kinds: set[Kind]) -> list[str]:
    """The keys that are about none of these kinds."""
    return [key for key in policy.rules.stated if not kinds & set(RULES[key][0])]


def _most(
    what: str, found: Fraction | None, limit: Any, worth: Worth, unknown: str = ""
) -> Verdict:
    """That a number is at most a limit; one that is not known is not."""
    if found is None:
        return False, worth, f"{unknown}; the policy allows {limit}", "", str(limit)
    shown = at_most(found)
    text = f"{what} {shown} ({worth}); the policy allows {limit}"
    return found <= Fraction(limit), worth, text, shown, str(limit)


_NO_PRIVACY = "it promises no privacy at all"


@_rule("max_epsilon_label", *_SPENDS)
def _label(one: Subject, limit: Any, _: LoadedPolicy) -> Iterator[Verdict]:
    yield _most("a label spends at most ε =", one.label, limit, one.worth, _NO_PRIVACY)


@_rule("max_epsilon_total", *_SPENDS)
def _total(one: Subject, limit: Any, _: LoadedPolicy) -> Iterator[Verdict]:
    what = "a label, with its part in the prior, spends at least ε ="
    yield _most(what, one.total, limit, "declared", _NO_PRIVACY)


@_rule("max_epsilon_person", *_SPENDS, "ledger")
def _person(one: Subject, limit: Any, policy: LoadedPolicy) -> Iterator[Verdict]:
    """The least ε whose δ the policy allows, of all labels and the prior.

    Of a ledger, what each data set has spent on a person, if labels that were drawn are booked.
    """
    if one.kind == "ledger":
        for name, (_, drawn, total) in _data_sets(one.entries).items():
            if drawn is not None:
                what = f"the data set {name} has spent on a person ε ="
                unknown = f"an artifact or a prior of the data set {name} counts no persons"
                yield _most(what, total.person, limit, "counted", unknown)
        return
    most = policy.rules.max_delta
    allowed = [(epsilon, delta) for delta, epsilon in one.person if delta <= Fraction(most)]
    epsilon, delta = min(allowed, default=(None, Fraction(0)))
    unknown = "it does not say how many labels a person has, so no ε of a person follows"
    if one.person:
        unknown = f"its ε of a person needs δ above {most}"
    at = f" at δ = {float(delta):.3g}" if delta else ""
    what = f"a person with {one.labels or 0:,} labels spends at most{at} ε ="
    # What the prior spent is declared, and so is a sum with it.
    yield _most(what, epsilon, limit, one.worth if one.total == one.label else "declared", unknown)


@_rule("max_labels_per_person", *_SPENDS)
def _labels(one: Subject, limit: Any, _: LoadedPolicy) -> Iterator[Verdict]:
    count = None if one.labels is None else Fraction(one.labels)
    unknown = "it does not say how many labels a person has"
    yield _most("labels of a person: at most", count, limit, "declared", unknown)


@_rule("mechanisms", *_SPENDS)
def _mechanism(one: Subject, allowed: list[str], _: LoadedPolicy) -> Iterator[Verdict]:
    yield _among("its mechanism is", one.mechanism or "", allowed)


@_rule("adjacency", *_SPENDS)
def _adjacency(one: Subject, allowed: list[str], _: LoadedPolicy) -> Iterator[Verdict]:
    yield _among("it protects each", one.protects or "", allowed)


def _among(what: str, stated: str, allowed: list[str]) -> Verdict:
    listed = ", ".join(allowed)
    text = f"{what} {stated} (declared); the policy allows {listed}"
    return stated in allowed, "declared", text, stated, listed


def _least(what: str, count: int, limit: int, worth: Worth) -> Verdict:
    text = f"{what} ({worth}); the policy demands {limit:,}"
    return count >= limit, worth, text, str(count), str(limit)


@_rule("min_group_rows", *_MADE)
def _groups(one: Subject, limit: int, _: LoadedPolicy) -> Iterator[Verdict]:
    if one.group_rows is not None:
        what = f"the smallest group with its own table has {one.group_rows:,} rows"
        yield _least(what, one.group_rows, limit, "declared")


@_rule("signed_by", "artifact")
def _signed(one: Subject, _: Any, policy: LoadedPolicy) -> Iterator[Verdict]:
    reasons = []
    for key in policy.keys:
        fingerprint, refusal = _refusal(one, key)
        if refusal is None:
            text = f"the holder of the key {fingerprint}… signed exactly this file"
            yield True, "proved", text, fingerprint, ""
            return
        reasons.append(refusal)
    count = len(policy.keys)
    text = f"none of the {count} keys of the policy signed it: {'; '.join(dict.fromkeys(reasons))}"
    yield False, "proved", text


def _refusal(one: Subject, key: PublicKey) -> tuple[str, str | None]:
    """The beginning of the key's fingerprint, and why the file is not signed with it."""
    from labeldp_verify.signature import MAX_KEY_BYTES, Signed, path_for  # noqa: PLC0415

    path, signature = path_for(one.artifact_path, key), b""
    try:
        if path.is_file():
            with path.open("rb") as file:
                signature = file.read(MAX_KEY_BYTES)
    except OSError:
        signature = b""
    signed = Signed(signature, key)
    absent = f"there is no {path.name}"
    return signed.fingerprint()[:16], signed.refusal(one.data) if signature else absent


@_rule("specs", "artifact")
def _current(one: Subject, folder: str, policy: LoadedPolicy) -> Iterator[Verdict]:
    from labeldp_compile.spec.agreement import spec_disagreements  # noqa: PLC0415  # YAML, rounding

    assert one.certificate is not None
    spec = (policy.specs or {}).get(one.name)
    if spec is None:
        yield False, "declared", f"no spec in {folder} has the name {one.name}"
        return
    place = policy.path.parent / folder
    differing = spec_disagreements(spec, one.certificate, one.integers, place)
    text = "; ".join(differing) or "it was made from the spec of its name, and agrees with it"
    yield not differing, "declared", text


@_rule("usefulness", *_MADE)
def _use(one: Subject, least: LeastUse, _: LoadedPolicy) -> Iterator[Verdict]:
    if not one.settled:
        yield from _open(one, least)
        return
    worth: Worth = "proved" if one.kind == "artifact" else "estimated"
    limit = least.max_mean_error if one.numbers else least.max_share_error
    if limit is not None:
        rows, what = least.rows, "mean" if one.numbers else "share"
        margins = [use.margin(rows) for use in one.uses]
        known = [Fraction(margin) for margin in margins if margin is not None]
        largest = max(known) if known and len(known) == len(margins) else None
        text = f"a {what} over {rows:,} rows has a 95% margin of error of at most"
        unknown = f"no {what} can be estimated from its labels"
        yield _most(text, largest, limit, "estimated", unknown)
    if least.max_bias is not None and one.numbers:
        bias = None if one.bias is None else Fraction(one.bias)
        text = "a label in the range may be off on average by"
        yield _most(text, bias, least.max_bias, worth, "its bias is not known")
    if least.min_outputs is not None and one.outputs is not None:
        yield _least(f"it has {one.outputs:,} outputs", one.outputs, least.min_outputs, worth)
    if least.no_warnings:
        text = "; ".join(warning.text for warning in one.warnings) or "no warning"
        yield not one.warnings, "estimated", text


def _open(one: Subject, least: LeastUse) -> Iterator[Verdict]:
    """The limits of usefulness for a plan whose randomizer the prior will decide."""
    ok = least.open == "allow"
    limit = "max_mean_error" if one.numbers else "max_share_error"
    for key in (limit, *(["max_bias"] if one.numbers else []), "min_outputs", "no_warnings"):
        demand = getattr(least, key)
        if demand is None or demand is False:
            continue
        text = f"{key} is open until compiled: the prior decides"
        margins = [use.noise.margin_under_prior(least.rows) for use in one.uses if use.noise]
        if key == limit and margins:
            text += f". About ±{at_most(max(margins), 3)} if labels are spread evenly (estimated)"
            text += f"; the policy allows {demand}"
        hint = "" if ok else "; open: allow accepts this"
        yield ok, "estimated", text + hint, OPEN, str(demand)


@_rule("prior_booked", *_MADE)
def _booked(one: Subject, where: str, policy: LoadedPolicy) -> Iterator[Verdict]:
    if one.kind == "plan":
        ok = one.spends is None or _is_ledger_of(one, policy, where)
        text = "its prior is booked in the ledger of the policy, or spends nothing"
        if not ok:
            text = "its prior spends ε, and its spec does not name the ledger of the policy"
        yield ok, "declared", text
        return
    assert one.certificate is not None
    prior, spent = one.certificate.prior, Fraction(one.certificate.exact.epsilon_prior)
    if not isinstance(prior, PrivatePriorClaims) and not spent:
        yield True, "declared", "its prior spent nothing (declared)"
        return
    person = one.certificate.person
    of_unit = spent * (1 if person is None else person.labels_per_person)
    entry = _entry_of(prior, of_unit, policy.booked)
    text = f"no entry of {where} has its prior, which spent ε = {at_most(spent)} (declared)"
    if entry is not None:
        text = f"entry {entry} of the ledger has its prior, and its ε = {at_most(spent)}"
    yield entry is not None, "declared", text, at_most(spent), ""


def _is_ledger_of(one: Subject, policy: LoadedPolicy, where: str) -> bool:
    """Whether the spec of a plan names the policy's ledger; its path starts at the spec."""
    stated = one.ledger
    if stated is None or is_url(stated) or is_url(where):
        return stated == where
    return (one.artifact_path / stated).resolve() == (policy.path.parent / where).resolve()


def _entry_of(prior: Any, spent: Fraction, entries: Sequence[Entry]) -> int | None:
    """The number of the entry with a prior of these weights and rows, and its ε."""
    for entry in entries:
        if entry.kind == "prior" and isinstance(prior, PrivatePriorClaims):
            answer = entry.facts["answer"]
            paid = Fraction(entries[entry.facts["spend"]].facts["epsilon"])
            same = (answer["weights"], answer["rows"]) == (prior.weights, prior.rows)
            if same and paid == spent:
                return entry.number
    return None


@_rule("max_epsilon_dataset", *_BOOKS)
def _data_set(one: Subject, limit: Any, _: LoadedPolicy) -> Iterator[Verdict]:
    if one.kind == "plan":
        yield from _planned(one, limit, None)
        return
    for name, (account, _drawn, total) in _data_sets(one.entries).items():
        yield _most(f"the data set {name} has spent ε =", total.row, limit, "counted")
        if account is not None:
            what = f"the data set {name} may spend on priors and metrics ε ="
            yield _most(what, account.budget, limit, "counted")


@_rule("max_epsilon_period", *_BOOKS)
def _period(one: Subject, stated: Any, _: LoadedPolicy) -> Iterator[Verdict]:
    """In any period of this length, not only in the last one: no clock decides."""
    if one.kind == "plan":
        yield from _planned(one, stated.epsilon, stated.days)
        return
    for name in _data_sets(one.entries):
        entries = [entry for entry in one.entries if entry.facts.get("data_set") == name]
        entries.sort(key=_time)
        spent = (_spent(_within(entries, _time(last), stated.days), name) for last in entries)
        text = f"within {stated.days:,} days, the data set {name} has spent ε ="
        yield _most(text, max(spent, default=Fraction(0)), stated.epsilon, "counted")


def _planned(one: Subject, limit: Any, days: int | None) -> Iterator[Verdict]:
    """The ε that a data set will have spent after a compile; nothing if that spends nothing."""
    if one.spends is None:
        return
    name, epsilon, now = one.spends
    periods: list[Sequence[Entry]] = [one.entries]
    if days is not None:
        entries = sorted(one.entries, key=_time)
        # where another machine's clock is ahead, a period with this spend may end later than now
        later = (_time(entry) for entry in entries)
        ends = [now, *(time for time in later if now < time < now + timedelta(days=days))]
        periods = [_within(entries, end, days) for end in ends]
    within = "" if days is None else f" within {days:,} days"
    text = f"the data set {name} will have spent{within} ε ="
    unknown = "its spec names no ledger, so nobody adds up what its data set spends"
    spent = max(_spent(period, name) for period in periods)
    yield _most(text, None if one.ledger is None else spent + epsilon, limit, "counted", unknown)


def _data_sets(
    entries: Sequence[Entry],
) -> dict[str, tuple[DataSet | None, DrawnLabels | None, Totals]]:
    """Of each data set its account of priors and metrics, the labels drawn, and both together."""
    from labeldp_compile.ledger.book import (  # noqa: PLC0415  # most are no ledgers
        Totals,
        add_up,
        drawn_labels,
    )

    accounts, drawn = add_up(entries)[0], drawn_labels(entries)
    both = {name: (accounts.get(name), drawn.get(name)) for name in [*accounts, *drawn]}
    return {name: (*parts, Totals.of(*parts)) for name, parts in both.items()}


def _spent(entries: Sequence[Entry], name: str) -> Fraction:
    """ε of priors and metrics, and of the labels of a row that were drawn and booked."""
    data_sets = _data_sets(entries)
    return data_sets[name][2].row if name in data_sets else Fraction(0)


def _within(entries: Sequence[Entry], end: datetime, days: int) -> Sequence[Entry]:
    """Of entries by time, those of the days that end at this time."""
    begin = bisect_right(entries, end - timedelta(days=days), key=_time)
    return entries[begin : bisect_right(entries, end, key=_time)]


def _time(entry: Entry) -> datetime:
    time = entry.facts["time"]
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        reason = f"entry {entry.number} of the ledger has an impossible time: {time}"
        raise InputError(reason) from None


@_rule("draw_once", "ledger")
def _once(one: Subject, _: Any, _policy: LoadedPolicy) -> Iterator[Verdict]:
    """Two draws of one part of a column spend twice, unless they are the same keyed draw."""
    draws: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    twice = []
    for entry in one.entries:
        if entry.kind != "draw":
            continue
        facts = {key: str(value) for key, value in entry.facts.items()}
        part = tuple(facts.get(key, "") for key in ("data_set", "column", "folder", "part"))
        names = ("artifact_sha256", "key", "context", "version")
        # In a folder, another digest is another draw; elsewhere it only names other rows.
        digest = facts.get("digest", "") if facts.get("folder") else ""
        draw = *(facts.get(key, "") for key in names), digest
        others = draws.setdefault(part, set())
        if others and (draw not in others or not facts.get("key")):
            twice.append(f"entry {entry.number} draws {' '.join(filter(None, part))} again")
        others.add(draw)
    yield not twice, "counted", "; ".join(twice) or "no part of a data set was drawn twice"

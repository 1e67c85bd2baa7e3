"""The rules of a policy: each key, the things that it is about, and when they meet it.

Every ε and δ is a fraction here. A policy's limits are exact decimals; an artifact's bounds are
those that its integers prove.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from labeldp_verify.rounded import at_most

from labeldp_compile.check.finding import OPEN, Kind, PolicyFinding, Worth
from labeldp_compile.check.model import LeastUse, LoadedPolicy
from labeldp_compile.check.subject import Subject, prior_of
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.account import add_up
from labeldp_compile.ledger.draws import Totals, drawn_labels
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.ledger_url import is_url
from labeldp_compile.spec_match import spec_disagreements

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey

Rule = Callable[[Subject, LoadedPolicy], Iterator[PolicyFinding]]
_MADE: tuple[Kind, ...] = ("artifact", "plan")
_SPENDS: tuple[Kind, ...] = (*_MADE, "training run")
_BOOKS: tuple[Kind, ...] = ("ledger", "plan")
RULES: dict[str, tuple[tuple[Kind, ...], Rule]] = {}


def _rule(key: str, *kinds: Kind) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        RULES[key] = kinds, rule
        return rule

    return add


def findings(subject: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """A finding for each key of the policy that is about such a thing."""
    for key in policy.rules.stated:
        kinds, rule = RULES[key]
        if subject.kind in kinds:
            yield from rule(subject, policy)


def not_applied(policy: LoadedPolicy, kinds: set[Kind]) -> list[str]:
    """The keys that are about none of these kinds."""
    return [key for key in policy.rules.stated if not kinds & set(RULES[key][0])]


def _most(
    rule: str, what: str, found: Fraction | None, limit: Any, worth: Worth, unknown: str
) -> PolicyFinding:
    """That a number is at most a limit; one that is not known is not."""
    if found is None:
        return PolicyFinding(
            rule, False, worth, f"{unknown}; the policy allows {limit}", "", str(limit)
        )
    shown = at_most(found)
    ok = found <= Fraction(limit)
    text = f"{what} {shown} ({worth}); the policy allows {limit}"
    return PolicyFinding(rule, ok, worth, text, shown, str(limit))


_NO_PRIVACY = "it promises no privacy at all"


@_rule("max_epsilon_label", *_SPENDS)
def _label(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    what, limit = "a label spends at most ε =", policy.rules.max_epsilon_label
    yield _most("max_epsilon_label", what, one.label, limit, one.worth, _NO_PRIVACY)


@_rule("max_epsilon_total", *_SPENDS)
def _total(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    what = "a label, with its part in the prior, spends at least ε ="
    limit = policy.rules.max_epsilon_total
    yield _most("max_epsilon_total", what, one.total, limit, "declared", _NO_PRIVACY)


@_rule("max_epsilon_person", *_SPENDS, "ledger")
def _person(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """The least ε whose δ the policy allows, of all labels and the prior.

    Of a ledger, what each data set has spent on a person, if labels that were drawn are booked.
    """
    limit = policy.rules.max_epsilon_person
    if one.kind == "ledger":
        for name, drawn in drawn_labels(one.entries).items():
            total = Totals.of(add_up(one.entries)[0].get(name), drawn).person
            what = f"the data set {name} has spent on a person ε ="
            unknown = f"an artifact or a prior of the data set {name} counts no persons"
            yield _most("max_epsilon_person", what, total, limit, "counted", unknown)
        return
    allowed = [(epsilon, delta) for delta, epsilon in one.person if delta <= _delta(policy)]
    epsilon, delta = min(allowed, default=(None, Fraction(0)))
    unknown = "it does not say how many labels a person has, so no ε of a person follows"
    if one.person:
        unknown = f"its ε of a person needs δ above {policy.rules.max_delta}"
    at = f" at δ = {float(delta):.3g}" if delta else ""
    what = f"a person with {one.labels or 0:,} labels spends at most{at} ε ="
    # What the prior spent is declared, and so is a sum with it.
    worth: Worth = one.worth if one.total == one.label else "declared"
    yield _most("max_epsilon_person", what, epsilon, limit, worth, unknown)


def _delta(policy: LoadedPolicy) -> Fraction:
    return Fraction(policy.rules.max_delta)


def needed_delta(one: Subject, policy: LoadedPolicy) -> PolicyFinding:
    """That the δ of a training run is allowed; checked for every policy."""
    limit, delta = policy.rules.max_delta, one.delta
    text = f"the run spends δ = {float(delta):.6g} (declared); the policy allows {limit}"
    ok = delta <= _delta(policy)
    return PolicyFinding("max_delta", ok, "declared", text, f"{float(delta):.6g}", str(limit))


@_rule("max_labels_per_person", *_SPENDS)
def _labels(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    limit = policy.rules.max_labels_per_person
    found = None if one.labels is None else Fraction(one.labels)
    unknown = "it does not say how many labels a person has"
    what = "labels of a person: at most"
    yield _most("max_labels_per_person", what, found, limit, "declared", unknown)


@_rule("mechanisms", *_SPENDS)
def _mechanism(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    allowed = policy.rules.mechanisms or []
    yield _among("mechanisms", "its mechanism is", one.mechanism or "", allowed)


@_rule("adjacency", *_SPENDS)
def _adjacency(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    allowed = list(map(str, policy.rules.adjacency or []))
    yield _among("adjacency", "it protects each", one.protects or "", allowed)


def _among(rule: str, what: str, found: str, allowed: list[str]) -> PolicyFinding:
    listed = ", ".join(allowed)
    text = f"{what} {found} (declared); the policy allows {listed}"
    return PolicyFinding(rule, found in allowed, "declared", text, found, listed)


@_rule("min_group_rows", *_MADE)
def _groups(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    if one.group_rows is not None:
        limit = policy.rules.min_group_rows or 1
        text = (
            f"the smallest group with its own table has {one.group_rows:,} rows (declared); the "
            f"policy demands {limit:,}"
        )
        ok = one.group_rows >= limit
        yield PolicyFinding("min_group_rows", ok, "declared", text, str(one.group_rows), str(limit))


@_rule("signed_by", "artifact")
def _signed(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    reasons = []
    for key in policy.keys:
        fingerprint, refusal = _refusal(one, key)
        if refusal is None:
            text = f"the holder of the key {fingerprint}… signed exactly this file"
            yield PolicyFinding("signed_by", True, "proved", text, fingerprint, "")
            return
        reasons.append(refusal)
    count = len(policy.keys)
    text = f"none of the {count} keys of the policy signed it: {'; '.join(dict.fromkeys(reasons))}"
    yield PolicyFinding("signed_by", False, "proved", text)


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
def _current(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    assert one.certificate is not None
    spec = (policy.specs or {}).get(one.name)
    text = f"no spec in {policy.rules.specs} has the name {one.name}"
    ok = False
    if spec is not None:
        differing = spec_disagreements(spec, one.certificate, one.integers)
        text = "; ".join(differing) or "it was made from the spec of its name, and agrees with it"
        ok = not differing
    yield PolicyFinding("specs", ok, "declared", text)


@_rule("usefulness", *_MADE)
def _use(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    least = policy.rules.usefulness
    assert least is not None
    if not one.settled:
        yield from _open(one, least)
        return
    worth: Worth = "proved" if one.kind == "artifact" else "estimated"
    limit = least.max_mean_error if one.numbers else least.max_share_error
    if limit is not None:
        rows, what = least.rows, "mean" if one.numbers else "share"
        found = [use.margin(rows) for use in one.uses]
        known = [Fraction(margin) for margin in found if margin is not None]
        whole = max(known) if known and len(known) == len(found) else None
        text = f"a {what} over {rows:,} rows has a 95% margin of error of at most"
        unknown = f"no {what} can be estimated from its labels"
        yield _most("usefulness", text, whole, limit, "estimated", unknown)
    if least.max_bias is not None and one.numbers:
        bias = None if one.bias is None else Fraction(one.bias)
        text = "a label in the range may be off on average by"
        yield _most("usefulness", text, bias, least.max_bias, worth, "its bias is not known")
    if least.min_outputs is not None and one.outputs is not None:
        text = f"it has {one.outputs:,} outputs ({worth}); the policy demands {least.min_outputs:,}"
        ok = one.outputs >= least.min_outputs
        found_text = str(one.outputs)
        yield PolicyFinding("usefulness", ok, worth, text, found_text, str(least.min_outputs))
    if least.no_warnings:
        text = "; ".join(warning.text for warning in one.warnings) or "no warning"
        yield PolicyFinding("usefulness", not one.warnings, "estimated", text)


def _open(one: Subject, least: LeastUse) -> Iterator[PolicyFinding]:
    """The limits of usefulness for a plan whose randomizer the prior will decide."""
    ok, hint = least.open == "allow", "" if least.open == "allow" else "; open: allow accepts this"
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
        yield PolicyFinding("usefulness", ok, "estimated", text + hint, OPEN, str(demand))


@_rule("prior_booked", *_MADE)
def _booked(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    where = policy.rules.prior_booked or ""
    if one.kind == "plan":
        ok = one.spends is None or (one.ledger is not None and _same(one, policy, where))
        text = "its prior is booked in the ledger of the policy, or spends nothing"
        if not ok:
            text = "its prior spends ε, and its spec does not name the ledger of the policy"
        yield PolicyFinding("prior_booked", ok, "declared", text)
        return
    assert one.certificate is not None
    prior, spent = prior_of(one.certificate), Fraction(one.certificate.exact.epsilon_prior)
    if prior is None and not spent:
        yield PolicyFinding("prior_booked", True, "declared", "its prior spent nothing (declared)")
        return
    entry = _entry_of(one, policy.booked)
    text = f"no entry of {where} has its prior, which spent ε = {at_most(spent)} (declared)"
    if entry is not None:
        text = f"entry {entry} of the ledger has its prior, and its ε = {at_most(spent)}"
    yield PolicyFinding("prior_booked", entry is not None, "declared", text, at_most(spent))


def _same(one: Subject, policy: LoadedPolicy, where: str) -> bool:
    """Whether the spec of a plan names the policy's ledger; its path starts at the spec."""
    own = one.ledger or ""
    if is_url(own) or is_url(where):
        return own == where
    return (one.artifact_path / own).resolve() == (policy.path.parent / where).resolve()


def _entry_of(one: Subject, entries: tuple[Entry, ...]) -> int | None:
    """The number of the entry with the prior of an artifact, and its ε."""
    assert one.certificate is not None
    prior, person = prior_of(one.certificate), one.certificate.person
    labels = 1 if person is None else person.labels_per_person
    spent = labels * Fraction(one.certificate.exact.epsilon_prior)
    for entry in entries:
        if prior is None or entry.kind != "prior":
            continue
        answer = entry.facts["answer"]
        paid = Fraction(entries[entry.facts["spend"]].facts["epsilon"])
        same = (answer["weights"], answer["rows"]) == (prior.weights, prior.rows)
        if same and paid == spent:
            return entry.number
    return None


@_rule("max_epsilon_dataset", *_BOOKS)
def _data_set(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    limit = policy.rules.max_epsilon_dataset
    if one.kind == "plan":
        yield from _planned(one, "max_epsilon_dataset", limit, None)
        return
    accounts = add_up(one.entries)[0]
    for name in _data_sets(one.entries):
        found = [("has spent", _spent(one.entries, name))]
        if name in accounts:
            found.append(("may spend on priors and metrics", accounts[name].budget))
        for what, epsilon in found:
            text = f"the data set {name} {what} ε ="
            yield _most("max_epsilon_dataset", text, epsilon, limit, "counted", "")


@_rule("max_epsilon_period", *_BOOKS)
def _period(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """In any period of this length, not only in the last one: no clock decides."""
    stated = policy.rules.max_epsilon_period
    assert stated is not None
    if one.kind == "plan":
        yield from _planned(one, "max_epsilon_period", stated.epsilon, stated.days)
        return
    for name in _data_sets(one.entries):
        own = [entry for entry in one.entries if entry.facts.get("data_set") == name]
        own.sort(key=_time)
        spent = (_spent(_within(own, _time(last), stated.days), name) for last in own)
        text = f"within {stated.days:,} days, the data set {name} has spent ε ="
        found = max(spent, default=Fraction(0))
        yield _most("max_epsilon_period", text, found, stated.epsilon, "counted", "")


def _planned(one: Subject, rule: str, limit: Any, days: int | None) -> Iterator[PolicyFinding]:
    """What a data set will have spent after a compile; nothing if that spends nothing."""
    if one.spends is None:
        return
    name, epsilon, now = one.spends
    periods: list[Sequence[Entry]] = [one.entries]
    if days is not None:
        own = sorted(one.entries, key=_time)
        # where another machine's clock is ahead, a period with this spend may end later than now
        later = (_time(entry) for entry in own)
        ends = [now, *(time for time in later if now < time < now + timedelta(days=days))]
        periods = [_within(own, end, days) for end in ends]
    within = "" if days is None else f" within {days:,} days"
    text = f"the data set {name} will have spent{within} ε ="
    unknown = "its spec names no ledger, so nobody adds up what its data set spends"
    spent = max(_spent(entries, name) for entries in periods)
    found = None if one.ledger is None else spent + epsilon
    yield _most(rule, text, found, limit, "counted", unknown)


def _data_sets(entries: Sequence[Entry]) -> list[str]:
    """The names, those of budgets and priors first."""
    return list(dict.fromkeys([*add_up(entries)[0], *drawn_labels(entries)]))


def _spent(entries: Sequence[Entry], name: str) -> Fraction:
    """ε of priors and metrics, and of the labels of a row that were drawn and booked."""
    return Totals.of(add_up(entries)[0].get(name), drawn_labels(entries).get(name)).row


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
def _once(one: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """Two draws of one part of a column spend twice, unless they are the same keyed draw."""
    drawn: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    twice = []
    for entry in one.entries:
        if entry.kind != "draw":
            continue
        facts = {key: str(value) for key, value in entry.facts.items()}
        where = tuple(facts.get(key, "") for key in ("data_set", "column", "folder"))
        part = *where, facts.get("part", "")
        names = ("artifact_sha256", "key", "context", "version")
        # In a folder, another digest is another draw; elsewhere it only names other rows.
        digest = facts.get("digest", "") if facts.get("folder") else ""
        draw = *(facts.get(key, "") for key in names), digest
        others = drawn.setdefault(part, set())
        if others and (draw not in others or not facts.get("key")):
            twice.append(f"entry {entry.number} draws {' '.join(filter(None, part))} again")
        others.add(draw)
    text = "; ".join(twice) or "no part of a data set was drawn twice"
    yield PolicyFinding("draw_once", not twice, "counted", text)

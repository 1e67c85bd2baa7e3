"""Two specs, key by key, with defaults filled in and ``auto`` resolved."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from labeldp_compile.diff.change import Change, Differences, Keyed
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior

# Keys by their beginnings: what a change of them breaks. All others break keyed outputs, except
# those that are not in the integers.
_BREAKS = {
    "name": "gates that demand the name refuse it",
    "label.": "labels are read in another way",
    "groups": "rows go to other groups",
    "privacy.unit": "another unit is protected",
    "privacy.person_column": "persons are told apart in another way",
}
_MORE = (
    *("privacy.epsilon", "privacy.labels_per_user", "privacy.labels_per_person"),
    *("privacy.split.prior", "privacy.split.label"),
)
"""What breaks the promise if it grows, or is no longer stated."""
_BOOKED = ("privacy.ledger", "prior.data_set", "prior.data_version")
"""What a ledger knows a prior by."""
_NOT_IN_THE_INTEGERS = (
    *("version", "name", "goal", "privacy.labels_per_user", "privacy.person_column"),
    *_BOOKED,
)


def diff_specs(old: Spec, new: Spec) -> Differences:
    """What differs between two specs."""
    a, b = dict(_flat(_stated(old))), dict(_flat(_stated(new)))
    keys = [*a, *(key for key in b if key not in a)]
    # An option that is off is no change where the other spec has no such part.
    differing = [
        key
        for key in keys
        if a.get(key) != b.get(key) and not (_is_off(a.get(key)) and _is_off(b.get(key)))
    ]
    changes = [_change(key, a.get(key), b.get(key), new) for key in differing]
    decided = [key for key in differing if not key.startswith(_NOT_IN_THE_INTEGERS)]
    keyed: Keyed = "not valid" if decided else "valid"
    if not decided and isinstance(new.prior, PrivatePrior):
        keyed = "unknown"
    return Differences("spec", changes, keyed)


def _is_off(value: Any) -> bool:
    return value is None or value is False


def _stated(spec: Spec) -> dict[str, Any]:
    return spec.model_dump(mode="python", exclude_none=True)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each scalar by its path; lists of scalars stay whole."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for i, item in enumerate(value):
            yield from _flat(item, f"{path}.{i}")
    else:
        yield path, value


def _change(key: str, old: Any, new: Any, spec: Spec) -> Change:
    breaks = next((why for start, why in _BREAKS.items() if key.startswith(start)), None)
    if key in _MORE and old is not None:
        is_more = new is None or Decimal(new) > Decimal(old)
        breaks = "the promise is weaker" if is_more else None
    if key in _BOOKED and old is not None and isinstance(spec.prior, PrivatePrior):
        breaks = "the ε of its prior is spent again"
        if key == "privacy.ledger" and new is None:
            breaks = "its prior is no longer booked"
    if key == "prior.kind" and (old, new) == ("private", "public"):
        breaks = "what was counted with noise is declared to be public"
    if breaks is None and not key.startswith(_NOT_IN_THE_INTEGERS):
        breaks = "keyed outputs do not stay valid"
    return Change(key, _shown(old), _shown(new), breaks)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)

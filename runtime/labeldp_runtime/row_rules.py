"""What a certificate demands of rows together, which a randomizer of single labels cannot see.

``labeldp randomize`` counts the rows of each person. No other host does: each refuses such an
artifact, unless the user says that the rows are prepared.
"""

from collections.abc import Mapping

from labeldp_runtime.errors import UnpreparedRowsError


def row_rules(certificate: Mapping[str, object]) -> list[str]:
    """What must be true of the rows, as plain sentences; empty for most artifacts."""
    found = []
    if "person" in certificate:
        person = _fields(certificate["person"])
        found.append(
            f"a person has at most {person.get('labels_per_person')} rows, over all calls and "
            f"tables; persons are in the column {person.get('column')!r}"
        )
    return found


def require_prepared(certificate: Mapping[str, object], source: str, how: str) -> None:
    """Raise UnpreparedRowsError if there are such rules; ``how`` says what to do."""
    if rules := row_rules(certificate):
        raise UnpreparedRowsError(
            f"{source}: its ε holds only if {'; and '.join(rules)}. Only labeldp randomize "
            f"enforces this: {how}"
        )


def _fields(part: object) -> Mapping[object, object]:
    return part if isinstance(part, Mapping) else {}

"""Which private columns hold nothing but whole numbers."""

from __future__ import annotations

from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, IntegerDomain, JointDomain, Randomizer

_EXACT_IN_FLOAT64 = 2**53  # whole numbers up to here


def has_whole_outputs(artifact: Artifact) -> list[bool]:
    """Of each private column whether all outputs are whole numbers that float64 and int64 hold."""
    domain = artifact.label
    if artifact.answers_with_sets or not isinstance(domain, JointDomain):
        return [all(map(_is_whole, artifact.tables))]
    return [isinstance(part, IntegerDomain) for part in domain.parts]


def _is_whole(randomizer: Randomizer) -> bool:
    if isinstance(randomizer, AdditiveRandomizer):
        parts = randomizer.origin, randomizer.unit
        reach = max(abs(randomizer.low), abs(randomizer.high)) * abs(parts[1]) + abs(parts[0])
        return all(part.is_integer() for part in parts) and reach <= _EXACT_IN_FLOAT64
    return all(
        not isinstance(value, str) and value == int(value) and abs(value) <= _EXACT_IN_FLOAT64
        for value in randomizer.values
    )

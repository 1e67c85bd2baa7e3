"""The format of a file: the newest that its graph or one of its claims needs.

A graph, and a claim, has a format that it began with and one that is written now; in between lie
those of older files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from labeldp_verify.claims.registry import all_claims
from labeldp_verify.graph.model import FORM_FORMATS

if TYPE_CHECKING:
    from labeldp_verify.claims.certificate import Certificate

RADII = ("1.5", "1.5")  # of windows of numbers whose lower bound is proved by radii
_TOGETHER = {  # claims that older files never joined
    frozenset({"groups", "joint"}): ("1.7", "1.7"),
    frozenset({"groups", "composition"}): ("1.9", "1.9"),
}


@cache
def all_formats() -> tuple[str, ...]:
    """Every format of this version of labeldp, the oldest first."""
    stated = [RADII, *FORM_FORMATS.values(), *_TOGETHER.values()]
    stated += [claim.formats for claim in all_claims()]
    return tuple(sorted({version for formats in stated for version in formats}, key=_number))


def formats_of(certificate: Certificate) -> tuple[str, ...]:
    """The formats that a file of these claims can have, the one that is written now last.

    Empty where no file can have them: only windows of numbers have radii.
    """
    parts = certificate.parts
    needed = [FORM_FORMATS.get(certificate.form, ())]
    needed += [claim.formats for claim in all_claims() if claim.part in parts]
    needed += [formats for both, formats in _TOGETHER.items() if both <= set(parts)]
    if any(hasattr(table.optimality, "radii") for table in certificate.tables):
        if certificate.form != "window" or set(parts) & {"groups", "joint", "sets"}:
            return ()
        needed.append(RADII)
    if not all(needed):
        return ()
    oldest, newest = (max((formats[at] for formats in needed), key=_number) for at in (0, -1))
    return tuple(dict.fromkeys((oldest, newest)))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))

"""The definition of one claim: its fields, how to state and how to check them."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from labeldp_verify.claims.records import Certificate, Declaration
from labeldp_verify.claims.utility import Use
from labeldp_verify.errors import require_same
from labeldp_verify.forms import Domain, Integers
from labeldp_verify.strict import plain

R = TypeVar("R")


@dataclass(frozen=True)
class Evidence:
    """The facts that claims are checked against.

    Attributes:
        integers: those of the graph.
        certificate: what is claimed of them; while it is being stated, all but the claims.
        ratios: [T + 1] the largest ratio of an output's probabilities, by table.
        uses: [T + 1] loss and bias, by table.
    """

    integers: Integers
    certificate: Certificate
    ratios: list[Fraction]
    uses: list[Use]


class Claim(Generic[R]):
    """One claim that some certificates make.

    Attributes:
        part: its name in the certificate's JSON.
        record: the class of its value; the annotations are the JSON types.
        proved, declared: names of its fields, as the certificate lists them.
        has_step: whether the report names its check; otherwise it is part of the step utility.
    """

    part: str
    record: type[R]
    proved: tuple[str, ...]
    declared: tuple[str, ...] = ()
    has_step = True

    def derive(self, found: Evidence) -> R | None:
        """The values that the integers prove. ValueError if the claim does not apply to them."""
        raise NotImplementedError

    def state(self, found: Evidence, declared: Declaration) -> R | None:
        """The claim of a new certificate; None if it makes none."""
        return self.derive(found)

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Check what can be checked before the integers are read, in every certificate."""

    def check(self, found: Evidence) -> str:
        """Check the claim, and say in words what was found. Raises CheckFailedError."""
        derived = self.derive(found)
        for field in self.proved:
            stated, given = found.certificate.parts[self.part], derived
            for name in field.split(".")[1:]:
                stated, given = getattr(stated, name), getattr(given, name)
            require_same(field, plain(stated), plain(given))
        return f"{', '.join(self.proved)} agree with the integers"


@cache
def all_claims() -> tuple[Claim[Any], ...]:
    """Every claim that a module of this folder defines, in the order of their parts' names.

    So a new claim is a new file.
    """
    package = import_module("labeldp_verify.claims")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    claims = (kind() for kind in Claim.__subclasses__())
    return tuple(sorted(claims, key=lambda claim: claim.part))

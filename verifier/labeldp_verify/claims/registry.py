"""The claims that a certificate can make besides those of every file: a file each.

A module of this folder whose ``CLAIM`` is a ``Claim`` is one of them, so that a new claim is
a new file. They are in the order of their parts' names.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeldp_verify.claims.claim import Claim


@cache
def all_claims() -> tuple[Claim[Any], ...]:
    """Every claim."""
    package = import_module("labeldp_verify.claims")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    claims = [module.CLAIM for module in modules if hasattr(module, "CLAIM")]
    return tuple(sorted(claims, key=lambda claim: claim.part))

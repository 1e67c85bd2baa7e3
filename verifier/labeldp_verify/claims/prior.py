"""What is declared of a private prior, as far as it can be true at all.

That a histogram was counted, of which rows and with which noise, no file proves. But no table has a
negative number of rows, and noise of too small a scale does not cost as little as is declared.
"""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp_verify.checks import demand
from labeldp_verify.claims.certificate import Certificate, PrivatePriorClaims

_MAX_ROWS = 2**53
_SLACK = Fraction(1, 10**9)  # of a scale in float64


def check_private_priors(certificate: Certificate, epsilon: Fraction) -> None:
    """Raise unless the facts of each private prior are possible; ε₁ is that of all together."""
    of_tables = [table.prior for table in certificate.tables]
    for least, prior in [(1, certificate.prior), *((0, prior) for prior in of_tables)]:
        if not isinstance(prior, PrivatePriorClaims):
            continue
        demand(least <= prior.rows < _MAX_ROWS, "the prior's rows are no number of rows")
        demand(prior.labels == certificate.labels, "the prior is of another number of labels")
        demand(prior.l1_sensitivity > 0, "the prior's sensitivity is not above 0")
        demand(math.isfinite(prior.scale) and prior.scale > 0, "the prior's noise has no scale")
        cost = prior.l1_sensitivity / Fraction(prior.scale)
        demand(cost <= epsilon * (1 + _SLACK), "the prior's noise costs more than its ε")

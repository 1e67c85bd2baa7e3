"""The one prior that all points of a sweep share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.ledger import PriorAccount
from labeldp_compile.planning.budget import RowsUnknownError, find_budget
from labeldp_compile.prior import Prior, estimate_prior
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior


@dataclass(frozen=True)
class SweepPrior:
    """A prior that was estimated once, and paid for once."""

    prior: Prior

    @property
    def spent(self) -> Fraction:
        """ε₁, what the estimate cost; 0 for a public or uniform prior."""
        return self.prior.epsilon_prior

    def at(self, epsilon: Fraction) -> Prior | None:
        """The prior of a point whose total is ε, or None if nothing would be left for a label."""
        if epsilon <= self.spent:
            return None
        return replace(self.prior, epsilon_label=epsilon - self.spent)


def sweep_prior(
    spec: Spec,
    directory: Path,
    *,
    spend: bool,
    test_seed: int | None = None,
    about_to_spend: Callable[[Fraction], None] = lambda epsilon: None,
    progress: Callable[[int], None] = lambda rows: None,
    account: PriorAccount | None = None,
) -> SweepPrior:
    """The prior of a spec, at the ε₁ that the spec declares.

    A private prior is refused with an InputError unless ``spend``; ``about_to_spend`` is called
    with ε₁ after the rows are counted and before any noise is drawn, and may raise. A prior that
    the ``account`` recalls costs nothing; one that it does not is left there for ``compile``.
    """
    private = isinstance(spec.prior, PrivatePrior)
    if private and not spend and account is None:
        raise InputError(_refusal(spec, directory))

    def before_spending(epsilon_prior: Fraction, epsilon_label: Fraction, rows: int | None) -> None:
        if private:
            if not spend:
                raise InputError(_refusal(spec, directory))
            about_to_spend(epsilon_prior)

    prior = estimate_prior(
        spec,
        directory,
        test_seed=test_seed,
        progress=progress,
        before_spending=before_spending,
        account=account,
    )
    return SweepPrior(prior)


def _refusal(spec: Spec, directory: Path) -> str:
    try:
        cost = f"ε₁ = {float(find_budget(spec, directory).prior):g}"
    except RowsUnknownError:
        cost = "ε₁ = √(k/n)"
    kept = "once: compile reuses it" if spec.privacy.ledger else "on top of what compile will spend"
    return (
        f"{spec.name}: the prior is private, and estimating it for a sweep costs {cost} {kept}. "
        "Two ways out: sweep with a prior that costs nothing "
        "(prior: {kind: uniform} or {kind: public}), or say --spend-prior to estimate it once "
        "for all points"
    )

"""All points of a sweep, and the document that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.prior import Prior
from labeldp_compile.spec import Spec
from labeldp_compile.tools.sweep.candidates import Candidates
from labeldp_compile.tools.sweep.measure import Missing, Point, measure
from labeldp_compile.tools.sweep.prior import SweepPrior

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Sweep:
    """What was measured.

    Attributes:
        spec: whose domain, loss and prior all points share.
        spent: ε₁, spent once on the prior.
        points: in the order of ε, then of mechanisms.
        missing: points that cannot be compiled.
        frontier: from unbiased to RR-on-Bins, in this order, one list an ε; empty if not asked for.
        left_out: (title, reason) of mechanisms that do not fit the domain or the loss.
        insecure: why the numbers rest on a test seed, or None.
    """

    spec: Spec
    spent: Fraction
    points: list[Point]
    missing: list[Missing]
    frontier: list[list[Point]]
    left_out: list[tuple[str, str]]
    insecure: str | None = None

    def best(self, epsilon: float) -> Point | None:
        """The point of least noisy label loss at this ε; of equal ones the first."""
        here = [point for point in self.points if point.epsilon == epsilon]
        return min(here, key=lambda point: point.loss, default=None)

    def epsilons(self) -> list[float]:
        """Every ε of the sweep, increasing."""
        return sorted({p.epsilon for p in self.points} | {p.epsilon for p in self.missing})

    def mechanisms(self) -> list[str]:
        """Titles of the mechanisms with a point, in the order of the sweep."""
        return list(dict.fromkeys(point.mechanism for point in self.points))

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, …, points, missing, …}``, keys in this order."""
        return {
            "format_version": FORMAT_VERSION,
            "name": self.spec.name,
            "labels": self.spec.domain.size,
            "loss": self.spec.loss,
            "prior": self.spec.prior.kind,
            "epsilon_prior_spent": float(self.spent),
            "insecure": self.insecure,
            "points": [
                {**asdict(point), "best": point is self.best(point.epsilon)}
                for point in self.points
            ],
            "missing": [asdict(point) for point in self.missing],
            "left_out": [
                {"mechanism": mechanism, "reason": reason} for mechanism, reason in self.left_out
            ],
            "bias_frontier": [[asdict(point) for point in line] for line in self.frontier],
        }


def run_sweep(
    spec: Spec,
    spec_digest: str,
    candidates: Candidates,
    epsilons: Sequence[Fraction],
    prior: SweepPrior,
    *,
    frontier: Sequence[Mechanism] = (),
    frontier_epsilons: Sequence[Fraction] = (),
    insecure: str | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Measure every mechanism at every ε, and the frontier at ``frontier_epsilons``.

    ``progress`` takes a line of text before each point.
    """
    line = [(epsilon, mechanism) for epsilon in epsilons for mechanism in candidates.chosen]
    curve = [(epsilon, mechanism) for epsilon in frontier_epsilons for mechanism in frontier]
    done, count = 0, len(line) + len(curve)

    def at(epsilon: Fraction, mechanism: Mechanism) -> Point | Missing:
        nonlocal done
        done += 1
        title = mechanism.title
        progress(f"{done} of {count}: ε = {float(epsilon):g}, {title}")
        here: Prior | None = prior.at(epsilon)
        if here is None:
            reason = f"ε₁ = {float(prior.spent):g} of the prior leaves nothing for a label"
            return Missing(title, float(epsilon), reason)
        return measure(spec, mechanism, here, spec_digest, insecure)

    measured = [at(*pair) for pair in line]
    budgets = [at(*pair) for pair in curve]
    along = [point for point in budgets if isinstance(point, Point)]
    return Sweep(
        spec=spec,
        spent=prior.spent,
        points=[point for point in measured if isinstance(point, Point)],
        missing=[point for point in (*measured, *budgets) if isinstance(point, Missing)],
        frontier=[
            [point for point in along if point.epsilon == epsilon]
            for epsilon in dict.fromkeys(point.epsilon for point in along)
        ],
        left_out=candidates.left_out,
        insecure=insecure,
    )

"""What the distance of discrete from rounded Gaussian noise may cost: never more than a stricter ε."""

from fractions import Fraction

from labeldp_trainer.dp_gradient import accounting
from labeldp_trainer.dp_gradient.accounting import Plan, calibrate, calibrate_integers, padded_batch
from labeldp_trainer.dp_gradient.lattice import Lattice
from labeldp_verify.analysis.bounds import exp_upper


def plan_of(steps, delta):
    return Plan(50_000, 1000, steps, padded_batch(50_000, 1000, steps, delta))


def test_a_looser_epsilon_never_needs_more_noise():
    """A million parameters, 5,000 steps: σ is 4.37 at ε = 4 and must not be more at ε = 8."""
    plan = plan_of(5000, 1e-6)
    strict, loose = (calibrate_integers(target, plan, 1e-6, 1_000_000) for target in (4.0, 8.0))
    assert loose <= strict


def test_a_looser_epsilon_is_not_refused_where_a_stricter_one_is_proved():
    plan = plan_of(10_000, 1e-6)
    strict = calibrate_integers(1.0, plan, 1e-6, 11_000_000)
    assert calibrate_integers(8.0, plan, 1e-6, 11_000_000) <= strict


def test_what_is_kept_of_delta_is_that_of_the_noise_that_is_drawn(monkeypatch):
    """The second calibration may find a σ below that of the first, by its tolerance."""
    calls = []

    def recorded(target, plan, delta):
        calls.append((target, delta))
        return calibrate(target, plan, delta)

    monkeypatch.setattr(accounting, "calibrate", recorded)
    plan, coordinates = Plan(47_717, 6764, 177, 6764, "partition"), 7201
    delta = 7.752023396188905e-06
    sigma = calibrate_integers(4.0, plan, delta, coordinates)
    target, rest = calls[-1]
    distance = Lattice(1.0, sigma).distance(coordinates, plan.steps)
    assert Fraction(rest) + (1 + exp_upper(Fraction(target))) * distance <= Fraction(delta)

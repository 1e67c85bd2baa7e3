"""Laplace and staircase noise as mechanisms: lattices, the best width, clipping, refusals."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.additive import Laplace, Staircase, label_lattice, staircase_width
from labeldp_compile.mechanisms.mechanism import Problem
from labeldp_compile.mechanisms.randomized_response import RandomizedResponse
from labeldp_compile.rounding.additive_noise import (
    LabelLattice,
    additive_noise,
    staircase_magnitudes,
)
from verifier.tests.analysed import noisy_label_loss, output_rounding, realised_ratio

LOSSES = ("squared", "absolute", "zero_one")


def mechanism(kind, clip=False, lattice=None):
    model = {"laplace": Laplace, "staircase": Staircase}[kind]
    return model(kind=kind, clip=clip, lattice=lattice)


def problem(
    kind, domain, epsilon, loss="squared", weights=None, clip=False, lattice=None, bits=None
):
    return mechanism(kind, clip, lattice), Problem(
        domain,
        weights or [1] * domain.size,
        Fraction(epsilon),
        loss,
        word_bits=bits,
    )


def build(asked):
    chosen, problem = asked
    return chosen.build(problem)


def loss_of(randomizer, domain, weights, loss):
    return noisy_label_loss(randomizer, domain.labels(), weights, loss)[0]


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(2, 6),
    st.sampled_from([1, 2, 4]),
    st.lists(st.integers(0, 9), min_size=6, max_size=6),
    st.fractions(Fraction(1, 5), 10, max_denominator=100),
    st.sampled_from(LOSSES),
    st.booleans(),
)
def test_no_other_width_is_better(k, spacing, numbers, epsilon, loss, clip):
    """Every width, realised and weighed exactly."""
    weights = [n + (i == 0) for i, n in enumerate(numbers[:k])]
    domain, lattice = IntegerDomain(0, k - 1), LabelLattice(k, spacing, 0.0, 1 / spacing)
    _, asked = problem("staircase", domain, epsilon, loss, weights, clip)
    D = lattice.period
    width = staircase_width(D, spacing, asked.prior(), float(epsilon), loss, clip)
    losses = [
        loss_of(
            additive_noise(lambda e, w=w: staircase_magnitudes(e, D, w), lattice, epsilon, clip),
            domain,
            weights,
            loss,
        )
        for w in range(1, D + 1)
    ]
    assert losses[width - 1] <= min(losses) * (1 + Fraction(1, 10**9))


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.sampled_from(["laplace", "staircase"]),
    st.integers(-1000, 1000),
    st.integers(1, 60),
    st.fractions(Fraction(1, 20), 60, max_denominator=10**4),
    st.booleans(),
    st.none() | st.decimals("0.1", "3", places=2),
    st.sampled_from(LOSSES),
)
def test_every_integer_domain(kind, first, steps, epsilon, clip, lattice, loss):
    domain = IntegerDomain(first, first + steps)
    r = build(problem(kind, domain, epsilon, loss, None, clip, lattice)).randomizer
    assert realised_ratio(r) <= exp_lower(epsilon)
    assert r.period == steps * r.spacing
    assert output_rounding(r) == 0
    unit, origin = Fraction(r.unit), Fraction(r.origin)
    assert [i * r.spacing * unit + origin for i in range(r.labels)] == domain.labels()
    if clip:
        assert (r.value(r.low), r.value(r.high)) == (domain.min, domain.max)


@pytest.mark.parametrize(
    ("finest", "spacing"),
    [(None, 1), ("5", 1), ("1", 1), ("0.99", 2), ("0.5", 2), ("0.01", 128), ("0.0078125", 128)],
)
def test_the_lattice_is_dyadic_and_at_least_as_fine_as_asked(finest, spacing):
    lattice = label_lattice(IntegerDomain(5, 9), None if finest is None else Decimal(finest))
    assert lattice == LabelLattice(5, spacing, 5.0, 1 / spacing)


def test_a_finer_lattice_approaches_the_continuous_loss():
    """Laplace(Δ/ε) has E|noise| = Δ/ε; the staircase of Definition 20 does better (ε = 4)."""
    domain, distances = IntegerDomain(0, 1), []
    for finest in (None, Decimal("0.1"), Decimal("0.001")):
        asked = problem("laplace", domain, 4, "absolute", lattice=finest)
        loss = loss_of(build(asked).randomizer, domain, [1, 1], "absolute")
        distances.append(abs(float(loss) - 0.25))
    assert distances[0] > 50 * distances[1] > 50 * 50 * distances[2]
    asked = problem("staircase", domain, 4, "absolute", lattice=Decimal("0.001"))
    loss = loss_of(build(asked).randomizer, domain, [1, 1], "absolute")
    assert float(loss) == pytest.approx(0.1378602, rel=1e-5)  # e^(ε/2)/(e^ε − 1)


def test_what_cannot_be_built_is_refused_before_anything_is_spent():
    def check(kind, domain, epsilon="1", clip=False, lattice=None):
        mechanism(kind, clip, lattice).require_feasible(domain, "squared", Fraction(epsilon))

    fine = IntegerDomain(0, 9)
    check("laplace", fine)
    check("laplace", fine, "0.000001", clip=True)
    with pytest.raises(ValueError, match=r"use ε ≥ 0\.00032 or clip: true"):
        check("staircase", fine, "0.0003")
    with pytest.raises(ValueError, match=r"use lattice: 1\.54e-05 or coarser, or fewer labels"):
        check("laplace", RealDomain(0.0, 9.0, 10), lattice=Decimal("1e-5"))
    check("laplace", RealDomain(0.0, 9.0, 10), lattice=Decimal("1.54e-5"))
    with pytest.raises(ValueError, match="at most 1,048,577 labels"):
        check("laplace", IntegerDomain(0, 1 << 21))
    with pytest.raises(ValueError, match="labels that are numbers"):
        check("laplace", CategoricalDomain(("a", "b"), "a"))
    # Other mechanisms are none of its business.
    RandomizedResponse(kind="randomized_response").require_feasible(
        IntegerDomain(0, 1 << 21), "squared", Fraction(1)
    )


def test_what_build_refuses():
    domain = IntegerDomain(1, 9)
    for kind in ("laplace", "staircase"):
        with pytest.raises(ValueError, match="not for added noise"):
            build(problem(kind, domain, 1, "poisson"))
        with pytest.raises(ValueError, match="reaches too far"):
            build(problem(kind, domain, "0.0001"))
        with pytest.raises(ValueError, match="too short for noise"):
            build(problem(kind, domain, 1, bits=2))

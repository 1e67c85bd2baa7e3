"""Everything that can fail before the prior is known fails here, before any ε is spent.

A rehearsal builds and verifies a file for the spec's domain and ε, with a mechanism of the same
form that needs no solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from labeldp_verify.forms import Domain, IntegerDomain, JointDomain
from labeldp_verify.usefulness.shortcomings import ONE_OUTPUT, Shortcoming

from labeldp_compile.build.assembly import certify
from labeldp_compile.build.tables import (
    FEWEST_BITS,
    SolvedTables,
    most_bytes,
    problem_of,
    require_room,
)
from labeldp_compile.errors import InputError
from labeldp_compile.prior.priors import Prior
from labeldp_compile.prior.split import PriorPlan
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec.model import Spec

MAX_REHEARSED_LABELS = 1024  # integers; more of them are computed in the same way
MAX_REHEARSED_PLACES = 8  # of the integers in one column of many combinations
P = TypeVar("P", bound=Domain)


def require_telling(spec: Spec, shortcomings: Sequence[Shortcoming]) -> None:
    """Raise InputError if a model is to learn from labels that are all the same."""
    found = next((one for one in shortcomings if one.kind == ONE_OUTPUT), None)
    if spec.goal != "training" or found is None:
        return
    (better, _), loss = LOSSES[spec.loss].training, ""
    if better == spec.mechanism.kind:
        (better, _), loss = LOSSES["squared"].training, "loss: squared and "
    raise InputError(
        f"{spec.name}: with {spec.mechanism.kind} {found.text}. For goal: training use {loss}"
        f"mechanism: {{kind: {better}}}; if only single labels are read, use goal: labels"
    )


def require_compilable(
    spec: Spec, plan: PriorPlan, rows: int | None, *, run_graph: bool = True
) -> int:
    """The most bytes of the artifact. Raises InputError for what can fail without a prior.

    Everything that can fail before the prior is known fails here: the mechanism's conditions, the
    size of the file for any prior, and a rehearsal. That builds and verifies a file
    for this domain and ε, with a mechanism of the same form that needs no solver. ``rows`` is n, if
    it is known. ``run_graph`` loads onnxruntime; it is needed only if ε is spent afterwards.
    """
    if spec.privacy.labels_per_user is not None:
        from labeldp_compile.composition import require_accounting  # noqa: PLC0415

        require_accounting()
    try:
        spec.named_mechanism.require_feasible(spec.domain, spec.loss, plan.epsilon_label)
        most = most_bytes(spec, plan.epsilon_label, rows)
        _rehearse(spec, plan, run_graph=run_graph)
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{spec.name}: {error}") from error
    return most if spec.groups is None else require_room(spec, plan.tables + 1, rows)


def _rehearse(spec: Spec, plan: PriorPlan, *, run_graph: bool) -> None:
    domain, mechanism, epsilon = spec.domain, spec.named_mechanism, plan.epsilon_label
    if mechanism.rehearsed_whole:
        mechanism.build(problem_of(spec, domain, _few(domain), epsilon))
    domain = _last_labels(domain)
    mechanism = mechanism.with_fewer_labels(domain.size)
    weights = _few(domain)
    prior = Prior.of({"kind": "public", "weights": weights}, epsilon, plan.epsilon_prior)
    if spec.groups is not None:  # whose words are shorter
        mechanism.rehearse(problem_of(spec, domain, weights, epsilon, word_bits=FEWEST_BITS))
    solved = mechanism.rehearse(problem_of(spec, domain, weights, epsilon))
    certify(
        spec,
        prior,
        SolvedTables.one(domain, solved),
        "0" * 64,
        None,
        many_labels=True,
        run_graph=run_graph,
    )


def _few(domain: Domain) -> list[int]:
    """Weights of a prior on few labels, whose loss is quick to compute."""
    k = domain.size
    return [int(y in (0, k // 2, k - 1)) for y in range(k)]


def _last_labels(domain: Domain) -> Domain:
    """The largest of very many integers: they are nearest to the limits of float64."""
    if isinstance(domain, JointDomain) and domain.size > MAX_REHEARSED_LABELS:
        return JointDomain.of([_last_integers(part, MAX_REHEARSED_PLACES) for part in domain.parts])
    return _last_integers(domain, MAX_REHEARSED_LABELS)


def _last_integers(domain: P, most: int) -> P | IntegerDomain:
    if not isinstance(domain, IntegerDomain) or domain.size <= most:
        return domain
    positive = domain.max >= -domain.min
    low = domain.max - most + 1 if positive else domain.min
    high = low + most - 1
    own = (domain.default, domain.null)
    default, null = (None if one is None else min(max(one, low), high) for one in own)
    return IntegerDomain(low, high, default, null, domain.keeps_nulls)

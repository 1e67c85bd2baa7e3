"""The compiler from end to end: spec → prior → mechanism → integers → certificate → ONNX.

Everything that can fail before the prior is known fails here, before any ε is spent.

A rehearsal builds and verifies a file for the spec's domain and ε, with a mechanism of the same
form that needs no solver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labeldp_verify.claims import nulls_in_words
from labeldp_verify.forms import Domain, IntegerDomain, JointDomain, Part
from labeldp_verify.usefulness.shortcomings import ONE_OUTPUT, Shortcoming

from labeldp_compile.build.assembly import Compiled, assemble, certify, paid_for, require_writable
from labeldp_compile.build.tables import (
    FEWEST_BITS,
    SolvedTables,
    most_bytes,
    problem_of,
    require_room,
)
from labeldp_compile.errors import DataError, InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.obtain import (
    estimate_prior,
    form_doubts,
    hold_saved_prior,
    prior_doubts,
    saved_prior_path,
)
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.prior.priors import Prior
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import PrivatePrior

if TYPE_CHECKING:
    from labeldp_compile.build.plan import SavedPlan
    from labeldp_compile.ledger.prior_account import PriorAccount
    from labeldp_compile.signing import PrivateKey


MAX_REHEARSED_LABELS = 1024  # integers; more of them are computed in the same way
MAX_REHEARSED_PLACES = 8  # of the integers in one column of many combinations


def require_telling(spec: Spec, shortcomings: Sequence[Shortcoming]) -> None:
    """Raise InputError if a model is to learn from labels that are all the same."""
    found = next((one for one in shortcomings if one.kind == ONE_OUTPUT), None)
    if spec.goal != "training" or found is None:
        return
    (better, _), loss = LOSSES[spec.loss].training, ""
    if better == spec.mechanism.kind:
        other = "zero_one" if spec.has_classes else "squared"
        (better, _), loss = LOSSES[other].training, f"loss: {other} and "
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


def _last_labels(domain: Domain, most: int = MAX_REHEARSED_LABELS) -> Domain:
    """The largest of very many integers: they are nearest to the limits of float64."""
    if isinstance(domain, JointDomain) and domain.size > most:
        parts = (_last_labels(part, MAX_REHEARSED_PLACES) for part in domain.parts)
        return JointDomain.of(cast(list[Part], list(parts)))
    if not isinstance(domain, IntegerDomain) or domain.size <= most:
        return domain
    low = domain.max - most + 1 if domain.max >= -domain.min else domain.min
    high = low + most - 1
    own = (domain.default, domain.null)
    default, null = (None if one is None else min(max(one, low), high) for one in own)
    return IntegerDomain(low, high, default, null, domain.keeps_nulls)


INSECURE = "INSECURE: made with a test seed, so that anyone can undo the noise; for tests only"


def compile_to(
    path: Path,
    directory: Path,
    *,
    overwrite: bool = False,
    key: PrivateKey | None = None,
    test_seed: int | None = None,
    observer: Observer = QUIET,
    approved: SavedPlan | None = None,
) -> tuple[Compiled, Path]:
    """Compile a spec and write the artifact, without another compile of that name in between.

    With ``approved``, what is spent must be what that plan says: else InputError is raised before.
    """
    with compiling(path, directory, overwrite, test_seed, observer, approved) as artifact:
        return artifact, artifact.write(directory, overwrite=overwrite, key=key, is_held=True)


@contextmanager
def compiling(
    path: Path,
    directory: Path | None,
    overwrite: bool,
    test_seed: int | None,
    observer: Observer,
    approved: SavedPlan | None = None,
) -> Iterator[Compiled]:
    """The artifact of a spec, in memory. A private prior spends ε₁, unless a ledger recalls it.

    If a file in ``directory``, where the artifact will be, keeps the prior, this compile holds that
    file for the whole block. Without a ledger, the noisy prior is kept there until
    ``Compiled.write`` is done. If something fails in between, the next compile finds it and spends
    nothing. Raises InputError for every error that the user can fix.
    """
    spec, source = load_spec(path)
    if directory is not None:
        require_writable(directory, spec.name, overwrite=overwrite)
    digest = hashlib.sha256(source).hexdigest()
    if approved is not None:
        approved.require_spec(digest)
        observer = replace(observer, spending=approved.require_spending)
    account = keep = None
    if spec.privacy.ledger is not None:
        from labeldp_compile.ledger.prior_account import account_of  # noqa: PLC0415

        account = account_of(spec, path.parent, digest, "compile", observer)
    with ExitStack() as stack:
        if directory is not None and account is None and isinstance(spec.prior, PrivatePrior):
            try:
                stack.enter_context(hold_saved_prior(directory, spec.name))
            except DataError as error:
                raise DataError(f"{error}; nothing was spent") from None
            require_writable(directory, spec.name, overwrite=overwrite)  # another may have ended
            keep = saved_prior_path(directory, spec.name)
        yield _solved(spec, path.parent, digest, test_seed, observer, account, keep)


def _solved(
    spec: Spec,
    folder: Path,
    digest: str,
    test_seed: int | None,
    observer: Observer,
    account: PriorAccount | None,
    keep: Path | None,
) -> Compiled:
    """From a spec, whose paths are relative to ``folder``, to an artifact that has verified."""

    def spending(plan: PriorPlan, rows: int | None) -> None:
        observer.spending(plan, rows)
        if isinstance(spec.prior, PrivatePrior):
            require_compilable(spec, plan, rows)
        elif spec.groups is not None:  # otherwise there is nothing to lose
            require_room(spec, plan.tables + 1, rows)

    for line in form_doubts(spec):
        observer.say(f"{spec.name}: {line}")
    prior = estimate_prior(
        spec,
        folder,
        test_seed=test_seed,
        observer=replace(observer, spending=spending),
        account=account,
        keep=keep,
    )
    if isinstance(spec.prior, PrivatePrior):
        observer.say(f"{spec.name}: {nulls_in_words(spec.domain)}")
    for line in prior_doubts(spec, prior, folder):
        observer.say(f"{spec.name}: {line}")
    where = keep if keep and keep.exists() and test_seed is None else None
    try:
        artifact = assemble(
            spec,
            prior,
            digest,
            insecure=None if test_seed is None else INSECURE,
            many_labels=True,
            observer=observer,
        )
        require_telling(spec, artifact.artifact.shortcomings)
    except Exception as error:
        remembers = where if account is None else account.name
        if remembers is None:
            raise
        reason = str(error)
        if not isinstance(error, InputError):  # a fault of a solver, or of ours
            reason = f"{spec.name}: failed ({type(error).__name__}: {error})"
        raise InputError(f"{reason}; {paid_for(remembers)}") from error
    return replace(artifact, kept=where)

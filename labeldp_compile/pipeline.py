"""The compiler from end to end: spec → prior → mechanism → integers → certificate → ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from labeldp_verify.forms import Domain, IntegerDomain, JointDomain
from labeldp_verify.shortcomings import ONE_OUTPUT, Shortcoming, says_nothing

from labeldp_compile import sizes
from labeldp_compile.assembly import (
    Artifact,
    assemble,
    certified,
    paid_for,
    problem_of,
    require_writable,
)
from labeldp_compile.composition import require_accounting
from labeldp_compile.errors import DataError, InputError
from labeldp_compile.grouped import assemble_groups, require_room
from labeldp_compile.ledger import PriorAccount, account_of
from labeldp_compile.prior import Keep, Prior, estimate_prior
from labeldp_compile.prior.group_priors import GroupedPrior
from labeldp_compile.prior.kept import kept_path, prior_held
from labeldp_compile.prior.obtain_groups import estimate_group_priors
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import PrivatePrior
from labeldp_compile.spec.validity import for_training

if TYPE_CHECKING:
    from labeldp_compile.signing import PrivateKey

MAX_REHEARSED_LABELS = 1024  # of the integers: more of them are computed alike
MAX_REHEARSED_PLACES = 8  # of the integers in one column of many combinations
P = TypeVar("P", bound=Domain)
INSECURE = "INSECURE: made with a test seed, so that anyone can undo the noise; for tests only"


def compile_spec(
    path: Path,
    *,
    directory: Path | None = None,
    overwrite: bool = False,
    test_seed: int | None = None,
    count_progress: Callable[[int], None] = lambda rows: None,
    solve_progress: Callable[[str], None] = lambda line: None,
    say: Callable[[str], None] = lambda line: None,
) -> Artifact:
    """Compile a spec file in memory. A private prior spends its ε₁ each time, if no ledger has it.

    ``say`` is told what was recalled or spent.

    With the ``directory`` that the artifact will be written to, it is checked before ε is spent,
    and without a ledger the noisy prior is kept there until ``Artifact.write`` is done: where
    something fails in between, the next compile finds it and spends nothing. While one compile
    works there, another of the same name is refused before it spends anything.

    Raises InputError (SpecError, DataError, BudgetError) for whatever the user can mend.
    """
    options = (test_seed, count_progress, solve_progress, say)
    with _compiled(path, directory, overwrite, *options) as artifact:
        return artifact


def compile_to(
    path: Path,
    directory: Path,
    *,
    overwrite: bool = False,
    key: PrivateKey | None = None,
    test_seed: int | None = None,
    count_progress: Callable[[int], None] = lambda rows: None,
    solve_progress: Callable[[str], None] = lambda line: None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Artifact, Path]:
    """``compile_spec`` and ``Artifact.write``, and no other compile of that name in between."""
    options = (test_seed, count_progress, solve_progress, say)
    with _compiled(path, directory, overwrite, *options) as artifact:
        return artifact, artifact.write_held(directory, overwrite=overwrite, key=key)


@contextmanager
def _compiled(
    path: Path,
    directory: Path | None,
    overwrite: bool,
    test_seed: int | None,
    count_progress: Callable[[int], None],
    solve_progress: Callable[[str], None],
    say: Callable[[str], None],
) -> Iterator[Artifact]:
    """The artifact; where a file keeps its prior, that is this compile's until the block ends."""
    spec, source = load_spec(path)
    if directory is not None:
        require_writable(directory, spec.name, overwrite=overwrite)
    digest = hashlib.sha256(source).hexdigest()
    account = account_of(spec, path.parent, digest, "compile", say)
    solved = partial(_solved, spec, path.parent, digest, test_seed, count_progress, solve_progress)
    if directory is None or account is not None or not isinstance(spec.prior, PrivatePrior):
        yield solved(account, None, say)
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(prior_held(directory, spec.name))
        except DataError as error:
            raise DataError(f"{error}; nothing was spent") from None
        require_writable(directory, spec.name, overwrite=overwrite)  # one may just have ended
        yield solved(None, Keep(kept_path(directory, spec.name), say), say)


def _solved(
    spec: Spec,
    folder: Path,
    digest: str,
    test_seed: int | None,
    count_progress: Callable[[int], None],
    solve_progress: Callable[[str], None],
    account: PriorAccount | None,
    keep: Keep | None,
    say: Callable[[str], None],
) -> Artifact:
    """From a spec, whose paths are relative to ``folder``, to an artifact that has verified."""

    def before_spending(epsilon_prior: Fraction, epsilon_label: Fraction, rows: int | None) -> None:
        if isinstance(spec.prior, PrivatePrior):  # others have nothing to lose
            require_compilable(spec, epsilon_prior, epsilon_label, rows)

    def before_tables(tables: int, rows: int) -> None:
        require_room(spec, tables, rows)

    options: dict[str, Any] = {
        "test_seed": test_seed,
        "progress": count_progress,
        "before_spending": before_spending,
        "account": account,
        "keep": keep,
        "say": say,
    }
    prior: Prior | GroupedPrior
    if spec.groups is None:
        prior = estimate_prior(spec, folder, **options)
    else:
        prior = estimate_group_priors(spec, folder, **options, before_tables=before_tables)
    where = keep.path if keep and keep.path.exists() and test_seed is None else None
    try:
        insecure = None if test_seed is None else INSECURE
        if isinstance(prior, GroupedPrior):
            artifact = assemble_groups(
                spec, prior, digest, insecure=insecure, progress=solve_progress
            )
        else:
            artifact = assemble(
                spec,
                prior,
                digest,
                insecure=insecure,
                labels_per_user=spec.privacy.labels_per_user,
                progress=solve_progress,
            )
        require_telling(spec, _shortcomings(artifact))
    except Exception as error:
        remembers = where if account is None else account.name
        if remembers is None:
            raise
        reason = str(error)
        if not isinstance(error, InputError):  # a fault of a solver, or of ours
            reason = f"{spec.name}: failed ({type(error).__name__}: {error})"
        raise InputError(f"{reason}; {paid_for(remembers)}") from error
    return replace(artifact, kept=where)


def _shortcomings(artifact: Artifact) -> list[Shortcoming]:
    if artifact.grouped is not None:
        return artifact.grouped.shortcomings
    proved = Fraction(artifact.certificate.exact.epsilon_label_bound)
    nothing = says_nothing(artifact.randomizer, proved)
    return [] if nothing is None else [nothing]


def require_telling(spec: Spec, shortcomings: Sequence[Shortcoming]) -> None:
    """Raise InputError if a model is to learn from labels that are all the same."""
    found = next((one for one in shortcomings if one.kind == ONE_OUTPUT), None)
    if spec.goal != "training" or found is None:
        return
    better, loss = for_training(spec.loss), ""
    if better == spec.mechanism.kind:
        better, loss = for_training("squared"), "loss: squared and "
    raise InputError(
        f"{spec.name}: with {spec.mechanism.kind} {found.text}. For goal: training take {loss}"
        f"mechanism: {{kind: {better}}}; whoever reads single labels only may say goal: labels"
    )


def require_compilable(
    spec: Spec,
    epsilon_prior: Fraction,
    epsilon_label: Fraction,
    rows: int | None,
    *,
    run_graph: bool = True,
) -> int:
    """The most bytes of the artifact; InputError if something could fail for want of no prior.

    Whatever can fail before the prior is known fails here: the mechanism's conditions, the size of
    the file for any prior (``sizes.py``), and a rehearsal, which builds and verifies a file for
    this domain and ε by a mechanism of the same form that needs no solver. ``rows`` is n, if it is
    known. Who spends nothing afterwards need not ``run_graph``, which loads onnxruntime.
    """
    if spec.privacy.labels_per_user is not None:
        require_accounting()
    try:
        spec.named_mechanism.require_feasible(spec.domain, spec.loss, epsilon_label)
        most = sizes.most_bytes(spec, epsilon_label, rows)
        _rehearse(spec, epsilon_prior, epsilon_label, run_graph=run_graph)
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{spec.name}: {error}") from error
    return most


def _rehearse(
    spec: Spec, epsilon_prior: Fraction, epsilon_label: Fraction, *, run_graph: bool
) -> None:
    domain, mechanism = spec.domain, spec.named_mechanism
    if mechanism.rehearsed_whole:
        mechanism.build(problem_of(spec, domain, _few(domain), epsilon_label))
    domain = _last_labels(domain)
    mechanism = mechanism.with_fewer_labels(domain.size)
    weights = _few(domain)
    prior = Prior(weights, epsilon_prior, epsilon_label, {"kind": "public", "weights": weights})
    solved = mechanism.rehearse(problem_of(spec, domain, weights, epsilon_label))
    certified(
        spec,
        domain,
        prior,
        solved,
        "0" * 64,
        None,
        spec.privacy.labels_per_user,
        version=lambda tool: "0",
        run_graph=run_graph,
    )


def _few(domain: Domain) -> list[int]:
    """Weights of a prior on few labels, whose loss is known at once."""
    k = domain.size
    return [int(y in (0, k // 2, k - 1)) for y in range(k)]


def _last_labels(domain: Domain) -> Domain:
    """The largest of very many integers: no float64 is nearer to its limits among the others."""
    if isinstance(domain, JointDomain) and domain.size > MAX_REHEARSED_LABELS:
        return JointDomain.of([_last_integers(part, MAX_REHEARSED_PLACES) for part in domain.parts])
    return _last_integers(domain, MAX_REHEARSED_LABELS)


def _last_integers(domain: P, most: int) -> P | IntegerDomain:
    if not isinstance(domain, IntegerDomain) or domain.size <= most:
        return domain
    positive = domain.max >= -domain.min
    low = domain.max - most + 1 if positive else domain.min
    high = low + most - 1
    default = None if domain.default is None else min(max(domain.default, low), high)
    return IntegerDomain(low, high, default)

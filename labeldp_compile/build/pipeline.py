"""The compiler from end to end: spec → prior → mechanism → integers → certificate → ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.claims import nulls_in_words

from labeldp_compile.build.assembly import Compiled, assemble, paid_for, require_writable
from labeldp_compile.build.rehearsal import require_compilable, require_telling
from labeldp_compile.build.tables import require_room
from labeldp_compile.errors import DataError, InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.obtain import estimate_prior, form_doubts, prior_doubts
from labeldp_compile.prior.saved_prior import hold_saved_prior, saved_prior_path
from labeldp_compile.prior.split import PriorPlan
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import PrivatePrior

if TYPE_CHECKING:
    from labeldp_compile.build.plan import SavedPlan
    from labeldp_compile.ledger.prior_account import PriorAccount
    from labeldp_compile.signing import PrivateKey


INSECURE = "INSECURE: made with a test seed, so that anyone can undo the noise; for tests only"


def compile_spec(
    path: Path,
    *,
    directory: Path | None = None,
    overwrite: bool = False,
    test_seed: int | None = None,
    observer: Observer = QUIET,
) -> Compiled:
    """Compile a spec file in memory. A private prior spends ε₁ each time, unless a ledger has it.

    Pass the ``directory`` that the artifact will be written to: it is checked before ε is spent.
    Without a ledger, the noisy prior is kept there until ``Compiled.write`` is done. If something
    fails in between, the next compile finds it and spends nothing. While one compile works there,
    another one with the same name is refused before it spends anything.

    Raises InputError (SpecError, DataError, BudgetError) for every error that the user can fix.
    """
    with _compiled(path, directory, overwrite, test_seed, observer) as artifact:
        return artifact


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
    """``compile_spec`` and ``Compiled.write``, without another compile of that name in between.

    With ``approved``, what is spent must be what that plan says: else InputError is raised before.
    """
    with _compiled(path, directory, overwrite, test_seed, observer, approved) as artifact:
        return artifact, artifact.write(directory, overwrite=overwrite, key=key, is_held=True)


@contextmanager
def _compiled(
    path: Path,
    directory: Path | None,
    overwrite: bool,
    test_seed: int | None,
    observer: Observer,
    approved: SavedPlan | None = None,
) -> Iterator[Compiled]:
    """The artifact. If a file keeps its prior, this compile holds that file for the whole block."""
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

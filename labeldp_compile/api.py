"""The public functions. Each loads its imports when it is called: a solver takes a second to load.

The examples run from a folder that holds the example specs as ``specs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_learn.toolkit import Target
    from labeldp_verify import Budget, Report

    from labeldp_compile.build.assembly import Compiled
    from labeldp_compile.build.plan import Plan
    from labeldp_compile.estimates.aggregates import Aggregates
    from labeldp_compile.spec import Spec
    from labeldp_compile.sweeps.choice import Choice
    from labeldp_compile.sweeps.sweep import Sweep

FilePath = str | os.PathLike[str]


def load_spec(path: FilePath) -> Spec:
    """Read and validate a spec file; touches no data.

    Args:
        path: a YAML file (docs/spec.md).

    Returns:
        The spec, frozen, with defaults filled in and ``auto`` resolved.

    Raises:
        SpecError: the spec is wrong; the message names file, line and key.

    >>> from labeldp_compile import load_spec
    >>> spec = load_spec("specs/health-rating.yaml")
    >>> spec.name, spec.domain.size, spec.loss
    ('health-rating', 4, 'zero_one')
    """
    from labeldp_compile.spec import load_spec as load

    return load(Path(path))[0]


def plan(path: FilePath) -> Plan:
    """The plan of a spec file: what compiling would spend, solve and write; reads no label.

    Args:
        path: a YAML file. Paths in it are relative to its folder.

    Returns:
        The exact parts of ε, the noise of a private prior (scale and standard deviation in rows),
        and forecasts of outputs, bytes and seconds as ranges.

    Raises:
        InputError: every error that ``compile_spec`` would raise before it spends: SpecError,
            DataError, BudgetError; OverBudgetError if the budget ledger would refuse.

    >>> from labeldp_compile import plan
    >>> planned = plan("specs/doctor-visits.yaml")
    >>> planned.budget.prior + planned.budget.label == planned.budget.total == 1
    True
    """
    from labeldp_compile.build.plan import plan_spec

    return plan_spec(Path(path))


def compile_spec(
    path: FilePath,
    *,
    directory: FilePath | None = None,
    overwrite: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Compiled:
    """Compile a spec file in memory: prior, solve, round to integers, certify, verify.

    A private prior spends its ε₁ **each time**, unless the spec names a budget ledger, which
    recalls it. Pass the ``directory`` that the artifact will be written to: it is then checked
    before ε is spent, and keeps the noisy prior until ``Compiled.write`` is done.

    Args:
        path: a YAML file. Paths in it are relative to its folder.
        directory: the one that ``Compiled.write`` will get.
        overwrite: whether an artifact in the directory may be replaced.
        progress: gets lines of text: what was recalled or spent, and the steps of a long solve.

    Returns:
        The verified artifact: ``model`` (the bytes of the ONNX file), ``certificate`` and
        ``randomizer`` (the integers of the only table; ``artifact`` has those of several tables).

    Raises:
        InputError: SpecError, DataError, BudgetError; OverBudgetError if the ledger refuses.

    >>> from pathlib import Path
    >>> from labeldp_compile import compile_spec
    >>> artifact = compile_spec("specs/health-rating.yaml", directory="build")
    >>> artifact.certificate.privacy.epsilon_label_bound <= 1
    True
    >>> artifact.write(Path("build"))
    PosixPath('build/health-rating.onnx')
    """
    from labeldp_compile.build.pipeline import compiling
    from labeldp_compile.observer import Observer

    place = None if directory is None else Path(directory)
    observer = Observer(step=progress, say=progress)
    with compiling(Path(path), place, overwrite, None, observer) as artifact:
        return artifact


def verify(
    path: FilePath,
    spec: FilePath | None = None,
    *,
    public_key: FilePath | None = None,
    signature: FilePath | None = None,
    budget: Budget | None = None,
) -> Report:
    """Re-derive every provable claim of an artifact from its file; raises unless all hold.

    The numbered checks are those of ``labeldp_verify.steps``. ``labeldp_verify.verify_file`` does
    the same without this package, but does not compare with a spec.

    Args:
        path: the ONNX file; nothing in it is trusted.
        spec: also check that the file was made from this spec.
        public_key: also check the file's signature with this key (PEM; Ed25519 or P-256).
        signature: the signature file; by default ``path`` with ``.sig`` added, or
            ``.sigstore.json`` for a P-256 key.
        budget: the most processor seconds and bytes; by default 20 s and 2 GB.

    Returns:
        The report: every check that was made, and the certificate.

    Raises:
        VerificationError: a check failed; its ``report`` says which.
        InputError: a file cannot be read. Its subclass TooLargeError: the check would exceed the
            budget, and says nothing about the file.

    >>> from pathlib import Path
    >>> from labeldp_compile import compile_spec, verify
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> report = verify(path, "specs/health-rating.yaml")
    >>> report.ok, [check.name for check in report.checks][4]
    (True, 'privacy')
    """
    from labeldp_verify import DEFAULT_BUDGET
    from labeldp_verify.errors import InputError
    from labeldp_verify.signature import read_signed_beside

    from labeldp_compile.spec.agreement import check_file

    if signature is not None and public_key is None:
        raise InputError("a signature is checked with a public key: give both")
    file, signed = Path(path), None
    if public_key is not None:
        signed = read_signed_beside(
            file, Path(public_key), None if signature is None else Path(signature)
        )
    wanted = None if spec is None else Path(spec)
    return check_file(file, wanted, signed, budget or DEFAULT_BUDGET).require()


def sweep(
    path: FilePath,
    epsilons: Sequence[float | str | Decimal | Fraction] | None = None,
    mechanisms: Sequence[str] | None = None,
    *,
    bias_frontier: bool = False,
    spend_prior: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Compile and verify every mechanism over a range of ε, for the label and loss of a spec.

    Args:
        path: a YAML file; its own mechanism is among those compared.
        epsilons: total ε of a label, in 10^-6 … 60, read as decimals; by default a range from 0.1
            to 8 and that of the spec.
        mechanisms: names, ``"rr_top_k:5"`` with its k; by default all that apply.
        bias_frontier: add the unbiased randomizer under falling penalties on its bias.
        spend_prior: estimate a private prior, once for all points, and spend its ε₁. Without it
            a private prior is refused.
        progress: gets lines of text: what is compiled, and what was recalled or spent.

    Returns:
        Points, and what could not be compiled, under one prior. ``best`` depends on the spec's
        goal: the least noise in an estimated mean or share, or the least noisy label loss.

    Raises:
        InputError: as ``compile_spec``; a private prior without ``spend_prior``; no mechanism fits.

    >>> from labeldp_compile import sweep
    >>> found = sweep("specs/visits.yaml", [1, 2], ["rr_on_bins", "optimal_unbiased"])
    >>> [(point.epsilon, point.mechanism) for point in found.points if point is found.best(2)]
    [(2.0, 'optimal_unbiased')]
    """
    from labeldp_compile.observer import Observer
    from labeldp_compile.sweeps.sweep import exact_epsilons, sweep_spec

    return sweep_spec(
        Path(path),
        None if epsilons is None else exact_epsilons(epsilons),
        mechanisms,
        bias_frontier=bias_frontier,
        spend_prior=spend_prior,
        observer=Observer(step=progress, say=progress),
    )


def choose(
    path: FilePath,
    *,
    mean_error: float | str | Decimal | Fraction | None = None,
    share_error: float | str | Decimal | Fraction | None = None,
    label_error: float | str | Decimal | Fraction | None = None,
    rows: int | None = None,
    max_belief: str | tuple[str | float, str | float] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Choice:
    """Find the smallest ε of a label, and the mechanism, that make private labels good enough.

    Several targets must hold together. No label is read: a private prior is treated as uniform. ε
    is in 0.01 … 20 with four significant digits; the mechanism was compiled and verified there.

    Args:
        path: a YAML file, whose ε and mechanism are ignored. Paths in it are relative to its
            folder.
        mean_error: 95% margin of error of a mean over ``rows`` rows, for all labels (numbers).
        share_error: the same of the least certain share (categories).
        label_error: of one private label under the prior: the root mean square error (numbers),
            or the probability that it is not the true one (categories).
        rows: of the mean or the shares.
        max_belief: ``"0.2@0.01"``: an observer's belief in a label whose share is 0.01 may rise to
            0.2. Without other targets, the result is the largest ε that allows this, and the best
            mechanism for the spec's goal at that ε.
        progress: gets lines of text: what is tried.

    Returns:
        ε, the mechanism, the results of the others, and the lines to put into a spec.

    Raises:
        InputError: as ``load_spec``; a target that has no meaning for these labels; with an
            ``exit_code`` of 1, targets that no ε reaches.

    >>> from labeldp_compile import choose
    >>> found = choose("specs/visits.yaml", mean_error=0.05, rows=100_000)
    >>> found.chosen.mechanism.title, float(found.epsilon)
    ('optimal_unbiased', 1.173)
    """
    from labeldp_compile.observer import Observer
    from labeldp_compile.sweeps.choice import choose_spec

    targets = {
        "mean-error": mean_error,
        "share-error": share_error,
        "label-error": label_error,
        "max-belief": max_belief,
    }
    asked = {name: value for name, value in targets.items() if value is not None}
    return choose_spec(Path(path), asked, rows, Observer(step=progress))


def estimate(
    artifact: FilePath,
    table: FilePath,
    column: str | Sequence[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    group_columns: Mapping[str, str] | None = None,
    target: Target = "rows",
    simultaneous: bool = False,
    more: Sequence[tuple[FilePath, FilePath]] = (),
    budget: Budget | None = None,
) -> Aggregates:
    """Estimate histogram, mean and quantiles of true labels from private ones; spends nothing.

    Args:
        artifact: the file that randomized the column; it is verified first.
        table: a Parquet or CSV file; only the columns named here are read.
        column: the column of private labels, or several of a joint label; by default those of the
            certificate.
        by: also estimate for each group of rows with one value in this column, or with one
            combination of values in several columns.
        group_columns: if the artifact has a table for each group: from its names of the columns of
            groups to those of ``table``, where they differ.
        target: what the 95% intervals are about: the true labels of these ``"rows"``, or the
            ``"population"`` that they were drawn from.
        simultaneous: whether all intervals hold at once, at 95% together, instead of each for
            itself.
        more: other artifacts, each with the table of its private labels. No row may be in two
            tables. For ``"rows"``, the result is about all rows together. For a ``"population"``,
            every table must be a sample of the same one. A folder that is given for several
            artifacts is divided by what its parts note.
        budget: of the verification; by default 20 s and 2 GB.

    Returns:
        Groups, all rows first; ``cell`` has their value in each column of ``by``. Each has the mean
        in units of the label, the shares of the classes of labels [c], and quantiles. Estimates
        that the artifact does not support are in ``refused``.

    Raises:
        VerificationError: the artifact does not verify.
        InputError: a file or column is missing, a value is not an output of the artifact, or the
            artifact supports no estimate; or the artifacts have different labels.

    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from labeldp_runtime import Randomizer
    >>> from labeldp_compile import compile_spec, estimate
    >>> path = compile_spec("specs/visits.yaml").write(Path("build"))
    >>> private = Randomizer.load(path)([1, 2, 3, 4] * 2500)
    >>> pq.write_table(pa.table({"visits": private}), "private.parquet")
    >>> mean = estimate(path, "private.parquet", "visits").groups[0].mean.at(0)
    >>> mean["low"] < mean["estimate"] < mean["high"]
    True
    """
    from labeldp_verify import DEFAULT_BUDGET
    from labeldp_verify.opening import open_artifact

    from labeldp_compile.estimates.aggregates import estimate_tables

    pairs = [(Path(one), Path(its)) for one, its in ((artifact, table), *more)]
    return estimate_tables(
        [open_artifact(one, budget or DEFAULT_BUDGET) for one, _ in pairs],
        pairs,
        column,
        by=[by] if isinstance(by, str) else list(by or ()),
        group_columns=group_columns,
        target=target,
        simultaneous=simultaneous,
    )

"""The audit of an artifact against its own certificate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from labeldp_verify import DEFAULT_BUDGET, Budget

from labeldp_compile.errors import InputError
from labeldp_compile.tools.audit.audit import MIN_SAMPLES, Claim, audit, choose_labels
from labeldp_compile.tools.audit.reference import Reference
from labeldp_compile.tools.audit.report import AuditReport
from labeldp_compile.tools.audit.target import ArtifactTarget, FunctionTarget
from labeldp_compile.tools.inspection import decode_artifact


def audit_artifact(
    path: Path,
    function: str | None = None,
    *,
    samples: int,
    progress: Callable[[int], None] = lambda done: None,
    processes: bool = True,
    budget: Budget = DEFAULT_BUDGET,
) -> AuditReport:
    """Audit an artifact as labeldp-runtime runs it, or a function ``module:name`` in its place.

    Raises VerificationError if the artifact does not verify, and InputError if it cannot be read,
    or if it or the function cannot be loaded or fails.
    """
    if samples < MIN_SAMPLES:
        raise InputError(f"an audit takes {MIN_SAMPLES:,} samples or more, not {samples:,}")
    decoded = decode_artifact(path, budget)
    reference = Reference(decoded, choose_labels(decoded.domain.size))
    bound = decoded.certificate.privacy.epsilon_label_bound
    claim = Claim(bound, "certified at most", decoded.domain.size, reference)
    target = ArtifactTarget(path) if function is None else FunctionTarget(function)
    return audit(target, reference.inputs(), claim, samples, progress, processes=processes)

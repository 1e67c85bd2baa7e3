"""A black-box statistical audit of a running randomizer; see ``audit.py`` for its plan."""

from labeldp_compile.tools.audit.audit import (
    MAX_LABELS,
    MIN_SAMPLES,
    AuditClaim,
    audit,
    audit_artifact,
    choose_labels,
)
from labeldp_compile.tools.audit.reference import Reference
from labeldp_compile.tools.audit.report import ERROR, AuditReport, Finding
from labeldp_compile.tools.audit.target import ArtifactTarget, AuditTarget, FunctionTarget

__all__ = [
    "ERROR",
    "MAX_LABELS",
    "MIN_SAMPLES",
    "ArtifactTarget",
    "AuditClaim",
    "AuditReport",
    "AuditTarget",
    "Finding",
    "FunctionTarget",
    "Reference",
    "audit",
    "audit_artifact",
    "choose_labels",
]

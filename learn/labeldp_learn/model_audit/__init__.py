"""Does a model keep labels private? What guesses about its training labels prove, without training
it again."""

from labeldp_learn.model_audit.attack import LEAST_ROWS, AuditRows, ModelAudit, audit_model

__all__ = ["LEAST_ROWS", "AuditRows", "ModelAudit", "audit_model"]

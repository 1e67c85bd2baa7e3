"""Policies as files: what a company demands of artifacts, training runs and ledgers."""

from labeldp_compile.tools.policy.finding import Judged, PolicyFinding
from labeldp_compile.tools.policy.judging import judge, judge_artifact, judge_plan
from labeldp_compile.tools.policy.model import GatePolicy, LoadedPolicy, load_policy, policy_schema

__all__ = [
    "GatePolicy",
    "Judged",
    "LoadedPolicy",
    "PolicyFinding",
    "judge",
    "judge_artifact",
    "judge_plan",
    "load_policy",
    "policy_schema",
]

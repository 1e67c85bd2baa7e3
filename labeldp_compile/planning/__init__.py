"""What ``compile`` would do with a spec, found without reading a label."""

from labeldp_compile.planning.plan import Plan, plan_spec

__all__ = ["Plan", "plan_spec"]

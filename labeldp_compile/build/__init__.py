"""From a spec to an artifact: rehearsal, plan, pipeline, assembly."""

PLAN_SUFFIX = ".plan"
"""Of the name of a saved plan."""

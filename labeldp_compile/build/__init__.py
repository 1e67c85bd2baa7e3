"""From a spec to an artifact: rehearsal, plan, pipeline, assembly."""

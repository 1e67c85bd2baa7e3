"""Settings of all tests: behaviour is tested, never wall time, and the same cases in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "labeldp",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock
)
settings.load_profile("labeldp")

"""Settings of all tests: behaviour is tested, never wall time."""

from hypothesis import settings

settings.register_profile("labeldp", deadline=None)
settings.load_profile("labeldp")

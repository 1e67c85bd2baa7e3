"""The run folder and what is in it. Only ``checkpoints`` imports JAX."""

from labeldp_trainer.run.folder import RunFolder, create_run, find_run, require_new

__all__ = ["RunFolder", "create_run", "find_run", "require_new"]

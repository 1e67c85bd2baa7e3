"""The run folder and what is in it."""

from labeldp_trainer.run.checkpoints import Checkpoints, load_params, save_params
from labeldp_trainer.run.folder import RunFolder, create_run, find_run

__all__ = ["Checkpoints", "RunFolder", "create_run", "find_run", "load_params", "save_params"]

"""The run folder and what is in it."""

from labeldp_trainer.run.checkpoints import Checkpoints
from labeldp_trainer.run.folder import RunFolder, create_run, find_run
from labeldp_trainer.run.params import load_params, save_params

__all__ = ["Checkpoints", "RunFolder", "create_run", "find_run", "load_params", "save_params"]

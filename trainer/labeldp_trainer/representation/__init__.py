"""Representations: maps of features that are learned without labels."""

from labeldp_trainer.representation.build import represented, reproduced, vectors_of_part
from labeldp_trainer.representation.representation import Representation
from labeldp_trainer.representation.store import FOLDER, restored, save

__all__ = [
    "FOLDER",
    "Representation",
    "represented",
    "reproduced",
    "restored",
    "save",
    "vectors_of_part",
]

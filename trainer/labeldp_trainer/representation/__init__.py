"""Representations: maps of features that are learnt without labels."""

from labeldp_trainer.representation.build import represented, vectors_of_part
from labeldp_trainer.representation.representation import Representation
from labeldp_trainer.representation.store import restored, save

__all__ = ["Representation", "represented", "restored", "save", "vectors_of_part"]

"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_trainer.representation.build import represented as represented
from labeldp_trainer.representation.build import reproduced as reproduced
from labeldp_trainer.representation.learner import PartsLearner as PartsLearner
from labeldp_trainer.representation.learner import vectors_of_part as vectors_of_part
from labeldp_trainer.representation.representation import FOLDER as FOLDER
from labeldp_trainer.representation.representation import Representation as Representation
from labeldp_trainer.representation.representation import restored as restored
from labeldp_trainer.representation.representation import save as save

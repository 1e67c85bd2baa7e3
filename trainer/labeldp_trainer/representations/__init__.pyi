"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_trainer.representations.learning import PartsLearner as PartsLearner
from labeldp_trainer.representations.learning import represented as represented
from labeldp_trainer.representations.learning import reproduced as reproduced
from labeldp_trainer.representations.learning import vectors_of_part as vectors_of_part
from labeldp_trainer.representations.representation import FOLDER as FOLDER
from labeldp_trainer.representations.representation import Representation as Representation
from labeldp_trainer.representations.representation import are_stored as are_stored
from labeldp_trainer.representations.representation import restored as restored
from labeldp_trainer.representations.representation import save as save

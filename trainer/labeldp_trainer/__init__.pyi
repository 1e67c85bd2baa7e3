"""The public names and where they are; ``__init__.py`` loads each one when it is used."""

from labeldp_trainer.config import LoadedConfig as LoadedConfig
from labeldp_trainer.config import load_config as load_config
from labeldp_trainer.config import parse_config as parse_config
from labeldp_trainer.data import FeatureShape as FeatureShape
from labeldp_trainer.errors import ArtifactError as ArtifactError
from labeldp_trainer.errors import ConfigError as ConfigError
from labeldp_trainer.errors import DataError as DataError
from labeldp_trainer.errors import DivergedError as DivergedError
from labeldp_trainer.errors import InputError as InputError
from labeldp_trainer.errors import RunFolderError as RunFolderError
from labeldp_trainer.errors import TrainerError as TrainerError
from labeldp_trainer.models import Model as Model
from labeldp_trainer.outcomes.coefficients import RunCoefficients as RunCoefficients
from labeldp_trainer.outcomes.coefficients import read_coefficients as read_coefficients
from labeldp_trainer.run.folder import load_params as load_params
from labeldp_trainer.training import Result as Result
from labeldp_trainer.training import train as train

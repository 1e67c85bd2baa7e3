"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_trainer.models.build import Clamped as Clamped
from labeldp_trainer.models.build import Interactions as Interactions
from labeldp_trainer.models.build import Linear as Linear
from labeldp_trainer.models.build import LogLink as LogLink
from labeldp_trainer.models.build import Model as Model
from labeldp_trainer.models.build import Params as Params
from labeldp_trainer.models.build import Scaled as Scaled
from labeldp_trainer.models.build import build_model as build_model
from labeldp_trainer.models.build import count_parameters as count_parameters
from labeldp_trainer.models.build import fresh_params as fresh_params
from labeldp_trainer.models.build import initial_params as initial_params
from labeldp_trainer.models.networks import Mlp as Mlp
from labeldp_trainer.models.networks import ResNet18 as ResNet18
from labeldp_trainer.models.networks import cifar_cnn as cifar_cnn
from labeldp_trainer.models.networks import mnist_cnn as mnist_cnn

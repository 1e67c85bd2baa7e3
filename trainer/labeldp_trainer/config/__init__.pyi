"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_trainer.config.load import LoadedConfig as LoadedConfig
from labeldp_trainer.config.load import json_schema as json_schema
from labeldp_trainer.config.load import load_config as load_config
from labeldp_trainer.config.load import parse_config as parse_config
from labeldp_trainer.config.method import Alibi as Alibi
from labeldp_trainer.config.method import Clusters as Clusters
from labeldp_trainer.config.method import DpSgd as DpSgd
from labeldp_trainer.config.method import LabelDpPro as LabelDpPro
from labeldp_trainer.config.method import LpMst as LpMst
from labeldp_trainer.config.method import NoMethod as NoMethod
from labeldp_trainer.config.method import OneRelease as OneRelease
from labeldp_trainer.config.method import Pate as Pate
from labeldp_trainer.config.method import Privatized as Privatized
from labeldp_trainer.config.method import StagedRelease as StagedRelease
from labeldp_trainer.config.model import Config as Config

"""Training configs: the models, and the way from a file to them."""

from labeldp_trainer.config.central import DpSgd, LabelDpPro
from labeldp_trainer.config.load import LoadedConfig, load_config, parse_config
from labeldp_trainer.config.method import NoMethod, Privatized
from labeldp_trainer.config.model import Config

__all__ = [
    "Config",
    "DpSgd",
    "LabelDpPro",
    "LoadedConfig",
    "NoMethod",
    "Privatized",
    "load_config",
    "parse_config",
]

"""The public names and where they are; ``__init__.py`` loads each one when it is used."""

from labeldp_learn.columns import PrivateLabelError as PrivateLabelError
from labeldp_learn.evaluation import Measured as Measured
from labeldp_learn.evaluation import calibration as calibration
from labeldp_learn.evaluation import evaluate as evaluate
from labeldp_learn.evaluation import scorer as scorer
from labeldp_learn.losses import BinaryForwardLogLoss as BinaryForwardLogLoss
from labeldp_learn.losses import BoostingPreset as BoostingPreset
from labeldp_learn.losses import ForwardLogLoss as ForwardLogLoss
from labeldp_learn.losses import UnbiasedPoissonLoss as UnbiasedPoissonLoss
from labeldp_learn.losses import UnbiasedSquaredLoss as UnbiasedSquaredLoss
from labeldp_learn.losses import boosting_objective as boosting_objective
from labeldp_learn.losses import boosting_preset as boosting_preset
from labeldp_learn.models import PrivateLabelClassifier as PrivateLabelClassifier
from labeldp_learn.models import PrivateLabelRegressor as PrivateLabelRegressor
from labeldp_learn.private_labels import PrivateLabels as PrivateLabels
from labeldp_learn.private_labels import Probabilities as Probabilities

"""Private labels in the tools that people already use: scikit-learn, LightGBM, XGBoost, PyTorch.

Everything here takes an artifact and private labels, and never a true one. So nothing spends
privacy: it is post-processing. Read in this order: ``private_labels.py`` (what an artifact says of
a column of private labels), ``models.py`` (estimators of scikit-learn around any other), and
``losses.py`` with ``torch_losses.py`` (losses for libraries that take one, and starting values for
boosting on noisy labels).
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)

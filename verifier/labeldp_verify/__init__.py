"""The verifier: re-derives every provable claim of an artifact from the file alone.

It stands alone: no solver, no prior, no rounding, no YAML. Read in this order: ``kernel.py`` (the
bytes of a file → ε, with Python alone), ``steps.py`` (what is checked), ``forms/`` (the integers
that decide every probability), ``decode/`` (the integers → forms), ``analysis/`` and ``claims/``
(integers → claims, a file each), ``graph/`` (integers → file, rebuilt and compared byte for byte)
and ``execute.py`` (the words on which the running graph is tried). Outside of what decides stand
``usefulness/`` (what private labels are good for) and ``console/`` (reports and the command).
"""

import os

from labeldp_verify.public_names import loaded_on_use

# Or onnxruntime, from 1.29 on and on Linux, sends names and hashes of models to its makers. It
# looks only when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__getattr__ = loaded_on_use(__name__)

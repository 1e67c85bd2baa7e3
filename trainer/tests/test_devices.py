"""Two host devices share a batch and come to the parameters of one."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from labeldp_trainer import load_config, train

from trainer.tests.compilation import with_flags
from trainer.tests.trainer_helpers import write_config, write_tables

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
from pathlib import Path
import jax
from labeldp_trainer import load_config, train
from labeldp_trainer.devices import Devices

directory = Path(sys.argv[1])
assert jax.local_device_count() == 2
assert [Devices.for_batch(b).count for b in (50, 51)] == [2, 1]
placed = []

class Watched:
    def __init__(self, model):
        self.model, self.init = model, model.init

    def apply(self, params, x, key=None):
        if key is not None:
            jax.debug.inspect_array_sharding(x["numeric"], callback=placed.append)
        return self.model.apply(params, x, key)

from labeldp_trainer.models import build_model
from labeldp_trainer.data import load_data
loaded = load_config(directory / "train.yaml")
shape = load_data(loaded, ("y",), ("y",)).shape
train(loaded, directory / "two", model=Watched(build_model(loaded, shape, 1)))
assert placed and all(s.shard_shape((50, 2)) == (25, 2) for s in placed), placed
"""


def test_two_devices(tmp_path):
    write_tables(tmp_path)
    write_config(tmp_path)
    assert jax.local_device_count() == 1
    train(load_config(tmp_path / "train.yaml"), tmp_path / "one")
    flags = with_flags("--xla_force_host_platform_device_count=2")
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env=os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        check=True,
        timeout=600,
    )
    a, b = (np.load(tmp_path / run / "params.npz") for run in ("one", "two"))
    for name in a.files:
        np.testing.assert_allclose(a[name], b[name], rtol=2e-3, atol=2e-4)
    a.close()
    b.close()

"""A private run that is killed repeats its steps bit by bit, with the same noise, or not at all."""

import json
import os
import shutil
import subprocess
import sys

import jax
import pytest
from labeldp_trainer import RunFolderError
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.devices import Devices
from labeldp_trainer.models.build import Linear

from trainer.tests.central_helpers import (
    lines_of,
    run,
    same,
    statement_of,
    with_method,
    write_tables,
)
from trainer.tests.compilation import with_flags
from trainer.tests.kills import HOLD, PATIENCE, TRAIN, kill_behind

pytestmark = pytest.mark.slow

TEXT = with_method(
    "kind: labeldp_pro, denoiser: alt_conv, epsilon: 8, delta: 1e-5, hull_units: 8"
).replace("epochs: 2", "epochs: 30, checkpoint_every: 7")
TEXT += "representation: {kind: random_fourier, features: 8}\n"  # taken up again, too

DEVICES = """
import json, sys
from pathlib import Path
import jax
import numpy as np
from labeldp_trainer import load_config, train
from labeldp_trainer.devices import Devices

directory = Path(sys.argv[1])
assert jax.local_device_count() == 2
loaded, folder = load_config(directory / "t.yaml"), directory / "run"
split, spread = [], Devices.split

def watched(self, tree):
    split.append(jax.tree.leaves(tree)[0].shape[0])
    return spread(self, tree)

Devices.split = watched
two = train(loaded, folder)
assert 16 in split, split
for name in ("checkpoints", "metrics.jsonl"):
    (folder / name).rename(directory / name)
facts = json.loads((folder / "run.json").read_text())
assert facts["devices"] == 2
Devices.for_batch = classmethod(lambda cls, batch: cls(jax.make_mesh((1,), ("batch",))))
try:
    train(loaded, folder, resume=True)
except Exception as error:
    assert "was started with devices 2, now 1" in str(error), error
else:
    raise AssertionError("other devices must be refused")
(folder / "run.json").write_text(json.dumps(facts | {"devices": 1}))
one = train(loaded, folder, resume=True)
for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(two.params), strict=True):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-4)
"""


def environment(**more):
    return os.environ | {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} | more


def test_kill_and_resume(tmp_path):
    write_tables(tmp_path)
    (tmp_path / "t.yaml").write_text(TEXT)
    arguments = [str(tmp_path / "t.yaml"), "-o", str(tmp_path / "cut"), "--quiet"]
    cut, whole, metrics = tmp_path / "cut", tmp_path / "whole", tmp_path / "cut" / "metrics.jsonl"
    held = [sys.executable, "-c", f"{HOLD}hold('cut', 25){TRAIN}", *arguments]
    kill_behind(10, metrics, held, env=environment())
    assert not (cut / "result.json").exists()
    reported = lines_of(cut)
    # The same key from the start: what the run would have been without the kill.
    shutil.copytree(cut, whole, ignore=shutil.ignore_patterns("checkpoints", "metrics.jsonl"))
    one, other = (run(tmp_path, TEXT, name, resume=True) for name in ("whole", "cut"))
    assert same(one.params, other.params)
    assert lines_of(whole) == lines_of(cut)
    assert lines_of(cut)[: len(reported)] == reported  # steps done twice told the same
    assert statement_of(whole) == statement_of(cut)
    facts = json.loads((cut / "run.json").read_text())
    facts["versions"]["jax"] = "0.0.1"
    (cut / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunFolderError, match="the same noise on other sums discloses labels"):
        run(tmp_path, TEXT, "cut", resume=True)


class Tilted(Linear):
    """The parameters of a linear model, and other outputs."""

    def apply(self, params, x, key=None):
        return 2 * super().apply(params, x, key)


def test_another_model_of_the_same_shapes(tmp_path):
    write_tables(tmp_path)
    shape = FeatureShape(numeric=2)
    text = with_method("kind: dp_sgd, epsilon: 8, delta: 1e-5, batches: partition")
    run(tmp_path, text, model=Linear(shape, 3))
    for name in ("result.json", "params.npz"):
        (tmp_path / "run" / name).unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints")  # as if it had been killed in the first epoch
    before = norms_of(tmp_path / "run")
    with pytest.raises(RunFolderError, match="was started with program_sha256"):
        run(tmp_path, text, model=Tilted(shape, 3), resume=True)
    with (
        jax.default_matmul_precision("bfloat16"),
        pytest.raises(RunFolderError, match="was started with environment"),
    ):
        run(tmp_path, text, model=Linear(shape, 3), resume=True)
    run(tmp_path, text, model=Linear(shape, 3), resume=True)
    assert norms_of(tmp_path / "run") == before


@pytest.mark.parametrize("other", ["processors", "NPROC", "PJRT_NPROC"])
def test_another_number_of_threads(tmp_path, monkeypatch, other):
    """XLA sums in as many pieces as it has threads. With microbatch 1 and 20,000 features, one
    thread and two gave other integers, and the same noise."""
    write_tables(tmp_path)
    text = with_method("kind: dp_sgd, epsilon: 8, delta: 1e-5, microbatch: 1")
    run(tmp_path, text)
    with monkeypatch.context() as patched:
        if other == "processors":
            one_more = {*os.sched_getaffinity(0), 1 << 10}
            patched.setattr(os, "sched_getaffinity", lambda process: one_more)
        else:
            patched.setenv(other, "1")
        with pytest.raises(RunFolderError, match="was started with environment"):
            run(tmp_path, text, resume=True)
    run(tmp_path, text, resume=True)


def norms_of(folder):
    return [line["noisy_gradient_norm"] for line in lines_of(folder)]


def test_a_gpu_that_need_not_repeat_bits(tmp_path, monkeypatch, environment):
    write_tables(tmp_path)
    text = with_method("kind: dp_sgd, epsilon: 8, delta: 1e-5, batches: partition")
    monkeypatch.setattr(Devices, "kind", "gpu: one")
    environment(XLA_FLAGS="--xla_gpu_deterministic_ops=true")
    run(tmp_path, text)
    run(tmp_path, text, resume=True)
    environment(XLA_FLAGS=None)
    with pytest.raises(RunFolderError, match="was started with environment"):
        run(tmp_path, text, resume=True)
    run(tmp_path, text, "other")
    with pytest.raises(RunFolderError, match="without XLA_FLAGS=--xla_gpu_deterministic_ops=true"):
        run(tmp_path, text, "other", resume=True)


def test_two_devices(tmp_path):
    write_tables(tmp_path)
    method = "kind: dp_sgd, epsilon: 8, delta: 1e-5, batches: partition, microbatch: 15"
    (tmp_path / "t.yaml").write_text(with_method(method))
    devices = environment(XLA_FLAGS=with_flags("--xla_force_host_platform_device_count=2"))
    subprocess.run(
        [sys.executable, "-c", DEVICES, str(tmp_path)], env=devices, check=True, timeout=PATIENCE
    )

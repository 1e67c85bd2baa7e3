"""Threads, forked and spawned processes, pickles."""

import concurrent.futures
import contextlib
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from labeldp_runtime import ArtifactError, Key, KeyFileError, PolicyError, Randomizer
from labeldp_runtime.randomizer import CHUNK

from runtime.tests.helpers import file

# 40 labels of randomized response: independent draws of 64 rows agree with a chance below 1e-70.
MODEL = file("integers, 40 labels")
ROWS = np.arange(64) % 40


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.onnx").write_bytes(MODEL)
    return tmp_path / "x.onnx"


@pytest.fixture
def key(tmp_path):
    return Key.create(tmp_path / "k.key")


def test_onnxruntime_tells_its_makers_nothing(path, tmp_path):
    """What it would send, it keeps in a folder of the user until it is sent."""
    script = f"import labeldp_runtime; labeldp_runtime.Randomizer.load({str(path)!r})([0])"
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(
        [sys.executable, "-c", script], env={**environment, "HOME": str(home)}, check=True
    )
    assert list(home.iterdir()) == []


def drawn_in_a_fork(randomizer, children):
    """What forked children draw with a session that was opened, and used, before the fork."""
    results = []
    for _ in range(children):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:  # no test framework runs in here
            os.write(writing, randomizer(ROWS).tobytes())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            results.append(pipe.read())
        assert os.waitpid(child, 0)[1] == 0
    return results


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_children_never_repeat_their_parents_labels(path):
    randomizer = Randomizer.load(path)
    drawn = [randomizer(ROWS).tobytes()]
    drawn += drawn_in_a_fork(randomizer, 5)
    drawn.append(randomizer(ROWS).tobytes())
    assert len(set(drawn)) == len(drawn) == 7
    assert all(len(part) == 64 * 8 for part in drawn)


def test_spawned_workers_take_a_pickled_randomizer(path, key):
    fresh = Randomizer.load(path)
    keyed = Randomizer.load(path, key=key, context="y")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        drawn = [pool.submit(fresh, ROWS).result() for _ in range(2)] + [fresh(ROWS)]
        ids = np.arange(40)
        replays = [pool.submit(keyed, ids, ids=ids).result() for _ in range(2)]
    assert len({part.tobytes() for part in drawn}) == 3
    expected = keyed(ids, ids=ids).tobytes()
    assert {part.tobytes() for part in replays} == {expected}


def test_threads_draw_words_of_their_own(path):
    randomizer = Randomizer.load(path)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        labels = np.tile(ROWS, 2 * CHUNK // 64)
        parts = list(pool.map(lambda _: randomizer(labels), range(8)))
    rows = np.concatenate(parts).reshape(-1, 64)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_a_pickle_names_the_file_and_holds_no_secret(path, key):
    keyed = Randomizer.load(path, key=key, context="y")
    data = pickle.dumps(keyed)
    assert len(data) < 1000 and str(path).encode() in data
    assert key.secret not in data and key.secret.hex().encode() not in data
    for other in (pickle.loads(data), copy.copy(keyed), copy.deepcopy(keyed)):
        assert np.array_equal(other(ROWS[:40], ids=range(40)), keyed(ROWS[:40], ids=range(40)))


def test_a_relative_path_is_pickled_as_it_was_when_it_was_loaded(path):
    with contextlib.chdir(path.parent):
        data = pickle.dumps(Randomizer.load(path.name))
    assert len(pickle.loads(data)(ROWS)) == 64


def test_a_pickle_refuses_another_file_or_key(path, key, tmp_path):
    data = pickle.dumps(Randomizer.load(path, key=key, context="y"))
    path.write_bytes(file("integers"))
    with pytest.raises(PolicyError, match="deploy the pinned file"):
        pickle.loads(data)
    path.unlink()
    with pytest.raises(ArtifactError, match="cannot be read"):
        pickle.loads(data)
    path.write_bytes(MODEL)
    (tmp_path / "k.key").unlink()
    Key.create(tmp_path / "k.key")
    with pytest.raises(KeyFileError, match="another key"):
        pickle.loads(data)


def test_what_came_from_no_file_cannot_be_pickled(path):
    with pytest.raises(TypeError, match="not loaded from a file"):
        pickle.dumps(Randomizer(MODEL))
    with pytest.raises(TypeError, match="not loaded from a file"):
        pickle.dumps(Randomizer.load(path, key=Key(bytes(32)), context="y"))

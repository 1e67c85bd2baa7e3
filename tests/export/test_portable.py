"""``labeldp export --to portable``, and portable files on hosts with other integers."""

import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner
from labeldp_runtime import ArtifactError, Randomizer
from labeldp_verify import check_bytes, check_file
from labeldp_verify.graph import canonical_json

from labeldp_compile.cli import main
from runtime.tests.helpers import with_metadata
from tests.golden.write import HERE

PORTABLE = HERE / "portable"
TRIES = 10_000
FILES = {"optimal-unbiased": 2, "exponential": 3, "laplace-real-unbiased": 9}  # and their limbs
LOW = 2**31 - 1
EXPORT = ("export", "--to", "portable")


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


def feed_of(name, limbs):
    """Labels and limbs as a host feeds them, without a runtime of labeldp."""
    kind = np.float64 if name == "laplace-real-unbiased" else np.int64
    return {"label": np.arange(len(limbs)).astype(kind) % 10, "entropy": limbs}


def hosts(shape):
    """Limbs as several hosts draw them: all have the same lowest 31 bits."""
    rng = np.random.default_rng(5)
    low = rng.integers(0, 2**31, shape)
    any_bits = rng.integers(-(2**63), 2**63 - 1, shape, endpoint=True)
    return {
        "31 bits": low,
        "32 bits, signed": np.where(rng.random(shape) < 0.5, low, low - 2**31),
        "32 bits, unsigned": low + 2**31 * rng.integers(0, 2, shape),
        "63 bits": low | (any_bits & ~LOW & 2**63 - 1),
        "64 bits, signed": low | (any_bits & ~LOW),
        "negative": low | (any_bits & ~LOW) | -(2**63),
    }


@pytest.mark.parametrize("name", FILES)
def test_hosts_of_all_integers_get_the_same_labels(name):
    path = PORTABLE / f"{name}.onnx"
    run, reader = session(path), Randomizer.load(path)
    found = hosts((TRIES, FILES[name]))
    words = whole_words(found["31 bits"], FILES[name])
    feed = feed_of(name, found["31 bits"])
    expected = reader.apply_words(feed["label"], words if words.shape[1] > 1 else words[:, 0])
    assert len(set(expected.tolist())) > 5
    for host, limbs in found.items():
        (outputs,) = run.run(None, feed_of(name, limbs))
        assert outputs.tobytes() == expected.tobytes(), host


def whole_words(limbs, width):
    """[n, w] the words that limbs [n, w·l] stand for."""
    size = 2 if width == 2 else 3
    parts = limbs.astype(np.uint64).reshape(len(limbs), -1, size)
    words = parts[..., 0] << np.uint64(33) | parts[..., 1] << np.uint64(2)
    return words | parts[..., 2] >> np.uint64(29) if size == 3 else words


def test_the_attack_of_a_host_without_unsigned_integers():
    """A host draws 63 bits for words of 64: the plain file gives wrong labels, without an error."""
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(10), 20_000)
    words = rng.integers(0, 2**63, len(labels)).astype(np.uint64)
    (ruined,) = session(HERE / "plain/optimal-unbiased.onnx").run(
        None, {"label": labels, "entropy": words}
    )
    limbs = rng.integers(0, 2**63, (len(labels), 2))
    (sound,) = session(PORTABLE / "optimal-unbiased.onnx").run(
        None, {"label": labels, "entropy": limbs}
    )
    bias = [np.abs(y.reshape(10, -1).mean(axis=1) - np.arange(10)).max() for y in (ruined, sound)]
    assert bias[0] > 2
    assert bias[1] < 0.5


def test_the_command(tmp_path):
    source = HERE / "plain/optimal-unbiased.onnx"
    done = CliRunner().invoke(main, [*EXPORT, str(source), "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    name = check_file(source).require().certificate.name
    path = tmp_path / f"{name}.onnx"
    assert done.stdout == f"{path}\n"
    assert path.read_bytes() == (PORTABLE / source.name).read_bytes()
    assert (tmp_path / f"{name}.certificate.json").exists()
    again = CliRunner().invoke(main, [*EXPORT, str(source), "-o", str(tmp_path)])
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    replaced = [*EXPORT, str(path), "-o", str(tmp_path), "--overwrite"]
    assert CliRunner().invoke(main, replaced).exit_code == 0
    assert path.read_bytes() == (PORTABLE / source.name).read_bytes()


@pytest.mark.parametrize("limbs", ["1", "3", "0", "-2", '"2"', "null", "2.0", "[2]"])
def test_a_certificate_of_other_limbs_is_refused(limbs, tmp_path):
    data = (PORTABLE / "optimal-unbiased.onnx").read_bytes()
    stated = canonical_json(check_bytes(data).require().certificate.to_json())
    text = '"limbs_per_word":2'
    assert stated.count(text) == 1
    changed = stated.replace(text, f'"limbs_per_word":{limbs}')
    forged = tmp_path / "x.onnx"
    forged.write_bytes(with_metadata(data, "labeldp.certificate", changed))
    assert not check_file(forged).ok
    with pytest.raises(ArtifactError):
        Randomizer.load(forged)

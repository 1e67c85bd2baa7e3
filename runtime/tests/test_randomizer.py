"""The runtime: right answers, fresh words, refusals with a reason."""

import json
import os
from collections import Counter

import numpy as np
import onnx
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from labeldp_runtime import (
    ArtifactError,
    LabelError,
    PlatformError,
    Randomizer,
    RuntimeArtifactError,
    entropy,
)
from labeldp_runtime.entropy import random_bytes, random_words
from labeldp_runtime.randomizer import CHUNK

from runtime.tests.helpers import (
    counts,
    file,
    with_checksum,
    with_metadata,
)

MODEL = file("integers")

pytestmark = pytest.mark.usefixtures("secure_noise")


@pytest.fixture(scope="module")
def randomizer():
    return Randomizer(MODEL)


def test_frequencies_match_the_certified_counts():
    randomizer, n = Randomizer(file("integers, 12 bits")), 200_000
    for label in (0, 5, 9):
        expected = counts("integers, 12 bits", label)
        seen = Counter(randomizer(np.full(n, label)).tolist())
        chi_square = sum(
            (seen[v] - n * c / 4096) ** 2 / (n * c / 4096) for v, c in expected.items()
        )
        assert set(seen) <= set(expected)
        assert chi_square < 40  # the chance of more is below 1e-8 at one degree of freedom


def test_words_are_fresh_in_every_call_and_chunk(randomizer):
    labels = np.zeros(3 * CHUNK + 17, dtype=np.int64)
    first, second = randomizer(labels), randomizer(labels)
    assert len(first) == len(labels)
    assert not np.array_equal(first, second)
    chunks = [first[i * CHUNK : (i + 1) * CHUNK] for i in range(3)]
    assert not np.array_equal(chunks[0], chunks[1])
    assert not np.array_equal(chunks[1], chunks[2])


FEW_AND_MANY = [64, 1 << 14]  # the kernel's own, and a stream of AES


@pytest.fixture
def with_stream(monkeypatch):
    """A function that puts another stream in the place of OpenSSL's."""
    return lambda stream: monkeypatch.setattr(entropy, "_stream", stream)


@pytest.mark.parametrize("count", FEW_AND_MANY)
@pytest.mark.parametrize("shown", [True, False])
def test_words_are_uniform_and_another_in_every_place(count, shown, with_stream):
    if not shown:  # a Python whose build hides OpenSSL
        with_stream(None)
    words = random_words(count // 2, 2)
    assert words.shape == (count // 2, 2) and words.dtype == np.uint64
    assert len(np.unique(words)) == count
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 7 * 0.5 / (64 * count) ** 0.5
    assert random_words(0).shape == (0,)


def test_many_words_have_a_key_of_the_kernel_for_each_part(with_stream):
    if entropy._stream is None:
        pytest.skip("this Python hides OpenSSL")
    keys, sizes = [], []

    def stream(key, place, size):
        keys.append(key)
        sizes.append(size)
        return own(key, place, size)

    own = entropy._stream
    with_stream(stream)
    most = entropy.MOST // 8  # words a key
    words = random_words(2 * most + 2_000)
    assert sizes == [entropy.MOST, entropy.MOST, 16_000]
    assert len(set(keys)) == 3 and {len(key) for key in keys} == {32}
    assert len(np.unique(words[-12_000:])) == 12_000
    aes = Cipher(algorithms.AES(keys[2]), modes.CTR(bytes(16))).encryptor()
    assert words[2 * most :].tobytes() == aes.update(bytes(16_000))


def test_a_stream_that_fails_gives_no_words(with_stream):
    with_stream(lambda key, place, size: False)
    with pytest.raises(OSError, match="no random bytes"):
        random_words(12_000)


def test_another_cipher_is_no_aes():
    assert not entropy._is_aes(lambda key, place, size: True)


def test_a_kernel_that_gives_less_is_asked_again(monkeypatch):
    monkeypatch.setattr(entropy.os, "getrandom", lambda size: os.urandom(min(size, 100)))
    assert len(random_bytes(1_030)) == 1_030


def test_given_words_give_the_same_labels_however_they_are_chunked(randomizer):
    n = 2 * CHUNK + 5
    labels = np.arange(n) % 10
    words = np.random.default_rng(1).integers(0, 2**64, n, np.uint64)
    whole = randomizer.apply_words(labels, words)
    parts = [randomizer.apply_words(labels[i::3], words[i::3]) for i in range(3)]
    for i, part in enumerate(parts):
        assert np.array_equal(whole[i::3], part)
    with pytest.raises(LabelError, match="expected uint64 words"):
        randomizer.apply_words(labels, words[:-1])
    with pytest.raises(LabelError, match="expected uint64 words"):
        randomizer.apply_words(labels, words.astype(np.int64))


def test_what_numbers_mean():
    # At ε = 40 the private label is the label's own bin, but for a chance below 1e-16.
    randomizer = Randomizer(file("integers, ε = 40"))
    bins = {y: randomizer([y])[0] for y in range(10)}
    assert randomizer([-5, 99, None, float("nan"), 2.4, 2.5, 3.5]).tolist() == [
        bins[y] for y in (0, 9, 0, 0, 2, 2, 4)
    ]
    assert randomizer([10**400, None, -(10**400), 5]).tolist() == [bins[y] for y in (9, 0, 0, 5)]
    masked = np.ma.array([3, 7], mask=[False, True])
    assert randomizer(masked).tolist() == [bins[3], bins[0]]


def test_text_labels_and_unknown_ones():
    randomizer = Randomizer(file("text, ε = 40"))
    labels = ["red", "blue", "green", "mauve", "", None, "\ud800", 7]
    expected = ["red", "blue", "green", "green", "green", "green", "green", "green"]
    assert randomizer(labels).tolist() == expected
    assert randomizer(np.array(labels[:4])).tolist() == expected[:4]
    assert randomizer([1, 2, ["red"]]).tolist() == ["green"] * 3
    assert randomizer(np.array([1, 2])).tolist() == ["green"] * 2


@pytest.mark.parametrize(
    "labels",
    [
        3,
        b"3",
        {1, 2},
        iter([1]),
        np.array([[1, 2]]),
        memoryview(b"abcd").cast("c"),
        memoryview(bytes(4)).cast("B", (2, 2)),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_unusable_labels_are_refused_as_a_whole(randomizer, labels):
    with pytest.raises(LabelError, match="expected"):
        randomizer(labels)


def test_a_damaged_certificate_is_refused():
    for value in ("{", "{}", "[]", '{"insecure": null}'):
        with pytest.raises(ArtifactError, match="damaged"):
            Randomizer(with_metadata(MODEL, "labeldp.certificate", value))


def test_a_platform_that_computes_wrongly_is_refused():
    proto = onnx.load_from_string(MODEL)
    metadata = {prop.key: prop.value for prop in proto.metadata_props}
    vectors = json.loads(metadata["labeldp.self_test"])
    for change in range(0, len(vectors["outputs"]), 7):
        wrong = json.loads(metadata["labeldp.self_test"])
        others = [v for v in set(wrong["outputs"]) if v != wrong["outputs"][change]]
        wrong["outputs"][change] = others[0]
        with pytest.raises(PlatformError, match="another version of onnxruntime"):
            Randomizer(with_metadata(MODEL, "labeldp.self_test", json.dumps(wrong)))


@pytest.mark.parametrize("place", ["offsets", "grid", "base_total", "segment_values"])
def test_the_self_test_notices_damaged_tables(place):
    proto = onnx.load_from_string(MODEL)
    tensor = next(t for t in proto.graph.initializer if t.name == place)
    numbers = np.frombuffer(tensor.raw_data, dtype=np.uint64).copy()
    numbers ^= np.uint64(1 << 40)
    tensor.raw_data = numbers.tobytes()
    with pytest.raises((PlatformError, ArtifactError)):
        Randomizer(with_checksum(proto))


def test_one_flipped_bit_is_refused():
    generator = np.random.default_rng(0)
    places = generator.integers(0, len(MODEL), 400)
    for place in places:
        mutant = bytearray(MODEL)
        mutant[place] ^= 1 << generator.integers(0, 8)
        with pytest.raises(RuntimeArtifactError):
            Randomizer(bytes(mutant))

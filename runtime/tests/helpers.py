"""What several tests of the runtime need: its files, forgeries of them, and plain readings."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HERE = Path(__file__).parent / "files"
FACTS = HERE / "facts.json"  # of the integers in some of the files
OLD = Path(__file__).parents[2] / "tests" / "golden"
TOO_FAR = 80  # of chi-square with 9 degrees of freedom: a chance of 2e-13


def path_of(name):
    """Where an artifact of ``files/write.py`` lies."""
    plain = name.replace("ε", "epsilon").replace(" = ", "-").replace(", ", "-").replace(" ", "-")
    return HERE / f"{plain}.onnx"


@cache
def file(name):
    """The bytes of an artifact of ``files/write.py``."""
    return path_of(name).read_bytes()


@cache
def facts():
    return json.loads(FACTS.read_text("utf-8"))


def counts(name, row):
    """How many words of a row lead to each output, word by word, as the definition says."""
    return Counter(dict(facts()["counts"][name][str(row)]))


def chi_square(seen, expected, rows):
    """Pearson's statistic of counts {value: count} against weights that sum to 2^12."""
    assert set(seen) <= set(expected) and sum(seen.values()) == rows
    means = {value: rows * weight / 4096 for value, weight in expected.items()}
    return sum((seen.get(value, 0) - mean) ** 2 / mean for value, mean in means.items())


def session_of(model):
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def metadata(model):
    return {prop.key: prop.value for prop in onnx.load_from_string(model).metadata_props}


def with_checksum(proto):
    """The bytes of a changed model with a checksum that fits: what a forger would write."""
    kept = [prop for prop in proto.metadata_props if prop.key != "labeldp.content_sha256"]
    del proto.metadata_props[:]
    proto.metadata_props.extend(kept)
    digest = hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    proto.metadata_props.add(key="labeldp.content_sha256", value=digest)
    return proto.SerializeToString(deterministic=True)


def with_metadata(model, key, value):
    proto = onnx.load_from_string(model)
    for prop in proto.metadata_props:
        if prop.key == key:
            prop.value = value
    return with_checksum(proto)


def restated(model, key, change):
    """The file after ``change`` of the JSON under a key of its metadata, with a right checksum."""
    value = json.loads(metadata(model)[key])
    change(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return with_metadata(model, key, text)


def recertified(model, change):
    """The file after ``change`` of its certificate, with a right checksum."""
    return restated(model, "labeldp.certificate", change)


def plain_words(key, context, digest, version, value, label, count):
    """One row's words, written from the specification in docs/keyed-words.md."""
    number = lambda n: n.to_bytes(8, "little")  # noqa: E731
    if isinstance(value, int):
        kind = 0 if value < 2**63 else 1
        message = number(value % 2**64) + number(label)
    else:
        kind = 2 if isinstance(value, str) else 3
        data = value.encode() if isinstance(value, str) else value
        body = number(len(data)) + data
        message = body + bytes(-len(body) % 16) + number(label) + bytes(8)
    words = []
    for j in range((count + 1) // 2):
        name = context.encode()
        info = b"labeldp-words-1" + number(len(name)) + name + bytes.fromhex(digest)
        secret = hmac.digest(key, info + number(version) + bytes([kind, j]), "sha256")
        mac = Cipher(algorithms.AES(secret), modes.CBC(bytes(16))).encryptor()
        block = (mac.update(message) + mac.finalize())[-16:]
        words += [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]
    return words[:count]


def values(column):
    """A column of any library as a list."""
    if hasattr(column, "to_pylist"):
        return column.to_pylist()
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


def found_under(folder, secret):
    """Files that hold the secret, as bytes, in hexadecimal or in base64."""
    forms = (secret, secret.hex().encode(), base64.b64encode(secret))
    files = [each for each in folder.rglob("*") if each.is_file()]
    return [each for each in files if any(form in each.read_bytes() for form in forms)]


class Counting:
    """A randomizer that counts its rows."""

    def __init__(self, randomizer):
        self.randomizer, self.rows, self._lock = randomizer, 0, threading.Lock()

    def __getattr__(self, name):
        return getattr(self.randomizer, name)

    def __call__(self, labels, **options):
        with self._lock:  # an engine may call from several threads
            self.rows += len(labels)
        return self.randomizer(labels, **options)

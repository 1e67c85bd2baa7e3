"""Artifacts that were altered: bytes, fields of the protobuf, the certificate, the integers."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import onnx
from hypothesis import strategies as st
from labeldp_verify.decode import read_certificate, read_domain, read_form, read_model
from labeldp_verify.graph import canonical_json

FILES = sorted((Path(__file__).parents[2] / "tests/golden/plain").glob("*.onnx"))
_CHECKSUM = re.compile(rb"\x72\x5a\x0a\x16labeldp\.content_sha256\x12\x40([0-9a-f]{64})")
_NUMBERS: list[Any] = [0, 1, -1, 2, 255, 2**31, 2**62, 2**63 - 1, -(2**63), 0.0, 0.5, 1e300, 1e-9]
_OTHERS: list[Any] = [None, True, "", "0", "1/2", "-1/3", "1e9", "9" * 2000, [], [0], {}, {"a": 1}]


@cache
def original(index: int) -> bytes:
    """The bytes of an artifact."""
    return FILES[index].read_bytes()


@dataclass(frozen=True)
class AlteredFile:
    """An artifact, before and after an alteration of the kind ``how``."""

    name: str
    how: str
    data: bytes = field(repr=False)
    altered: bytes = field(repr=False)


def altered_file(random: Random) -> AlteredFile:
    """An artifact of tests/golden, altered; mostly with a checksum that is right again."""
    index = random.randrange(len(FILES))
    data = original(index)
    alter = random.choice([_bytes, _initializer, _initializer, _metadata, _forged])
    altered: bytes = alter(data, random)
    altered = with_checksum(altered) if random.random() < 0.8 else altered
    return AlteredFile(FILES[index].stem, alter.__name__[1:], data, altered)


def altered_files() -> st.SearchStrategy[AlteredFile]:
    """Any of them."""
    return st.randoms(use_true_random=True).map(altered_file)


def with_checksum(data: bytes) -> bytes:
    """The file with the checksum of what else is in it, as a forger would leave it."""
    entry = _CHECKSUM.search(data)
    if entry is None:
        return data
    start, end = entry.span()
    digest = hashlib.sha256(data[:start] + data[end:]).hexdigest().encode()
    return data[: end - 64] + digest + data[end:]


def _bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    place = random.randrange(len(data))
    size = random.choice([1, 1, 1, 8, 64, 1000])
    kind = random.randrange(7)
    if kind == 0:
        changed[place] ^= 1 << random.randrange(8)
    elif kind == 1:
        changed[place] = random.randrange(256)
    elif kind == 2:
        del changed[place:]
    elif kind == 3:
        del changed[place : place + size]
    elif kind == 4:
        changed[place:place] = bytes(random.randrange(256) for _ in range(min(size, 64)))
    elif kind == 5:
        other = random.randrange(len(data))
        changed[place : place + size] = data[other : other + size]
    else:
        changed += random.choice([b"\0", data, data[place:], original(0)])
    return bytes(changed)


def _initializer(data: bytes, random: Random) -> bytes:
    model = onnx.load_from_string(data)
    constants = model.graph.initializer
    index = random.randrange(len(constants))
    tensor = constants[index]
    kind = random.randrange(10)
    if kind <= 4 and len(tensor.raw_data) >= 8:
        tensor.raw_data = _words_changed(tensor.raw_data, random)
    elif kind <= 4 and tensor.string_data:
        place = random.randrange(len(tensor.string_data))
        tensor.string_data[place] = random.choice([b"", b"x", b"\xff", tensor.string_data[0]])
    elif kind == 5:
        tensor.data_type = random.randrange(24)
    elif kind == 6:
        dims = [random.choice([0, 1, 2, -1, 2**40, 2**62]) for _ in range(random.randrange(4))]
        del tensor.dims[:]
        tensor.dims.extend(dims)
    elif kind == 7:
        if random.random() < 0.5:
            tensor.raw_data = b"" if random.random() < 0.5 else tensor.raw_data + bytes(8)
        tensor.int64_data.extend([1, 2, 3])
    elif kind == 8:
        tensor.name = random.choice([c.name for c in constants] + ["", "label", "x"])
    elif random.random() < 0.5:
        constants.append(copy.deepcopy(tensor))
    else:
        del constants[index]
    return bytes(model.SerializeToString(deterministic=True))


def _words_changed(raw: bytes, random: Random) -> bytes:
    """One or two 8-byte elements of a constant, changed a little or beyond measure."""
    count = len(raw) // 8
    words = [int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(count)]
    i, j = random.randrange(count), random.randrange(count)
    kind = random.randrange(6)
    if kind == 0:
        words[i] += random.choice([1, -1, 2, 1 << random.randrange(64)])
    elif kind == 1:
        words[i], words[j] = words[j], words[i]
    elif kind == 2:
        step = 1 << random.randrange(60)
        words[i], words[j] = words[i] + step, words[j] - step
    elif kind == 3:
        words[i] = random.choice([0, 1, 2**63, 2**64 - 1, random.getrandbits(64)])
    elif kind == 4:
        words.insert(i, words[j])
        words.pop(random.randrange(len(words)))
    else:
        words = words[::-1]
    return b"".join((word % 2**64).to_bytes(8, "little") for word in words)


def _metadata(data: bytes, random: Random) -> bytes:
    model = onnx.load_from_string(data)
    properties = model.metadata_props
    entry = random.choice(properties)
    kind = random.randrange(7)
    if kind == 0:
        entry.key = random.choice(["", "x", *(p.key for p in properties)])
    elif kind == 1:
        place = random.randrange(len(entry.value) + 1)
        entry.value = (
            entry.value[:place] + random.choice(["", "0", " ", "é"]) + entry.value[place + 1 :]
        )
    elif kind == 2:
        properties.append(copy.deepcopy(entry))
    elif kind == 3:
        properties.remove(entry)
    elif kind == 4:
        properties.reverse()
    else:
        (text,) = (p for p in properties if p.key == "labeldp.certificate")
        certificate = json.loads(text.value)
        _change_certificate(certificate, random)
        text.value = (json.dumps if kind == 5 else canonical_json)(certificate)
    return bytes(model.SerializeToString(deterministic=True))


def _forged(data: bytes, random: Random) -> bytes:
    """What the open writer makes of altered integers or of an altered certificate."""
    model = read_model(data)
    certificate = read_certificate(model).to_json()
    domain = read_domain(certificate["label"]["domain"])
    form = read_form(certificate["form"], model, data, domain)
    choice = random.random()
    if choice < 0.1:
        _restate_epsilon(certificate, random)
    elif choice < 0.6:
        for _ in range(random.choice([1, 1, 1, 2])):
            _change_certificate(certificate, random)
    else:
        fields = form.randomizer.__dataclass_fields__
        name = random.choice(sorted(fields))
        changed = _near(getattr(form.randomizer, name), random)
        parts = {field: getattr(form.randomizer, field) for field in fields}
        form.randomizer = type(form.randomizer)(**{**parts, name: changed})
    try:
        return form.rebuild(domain, certificate)
    except Exception:  # the writer refuses: a forger would have to try something else
        return data


def _restate_epsilon(certificate: dict[str, Any], random: Random) -> None:
    """Another ε of the label, in all places where it is stated, and the sum with it."""
    exact, stated = certificate["exact"], certificate["privacy"]
    change = Fraction(random.randrange(-1000, 1000), 10 ** random.randrange(3, 15))
    label = Fraction(exact["epsilon_label"]) * (1 + change)
    total = label + Fraction(exact["epsilon_prior"])
    exact["epsilon_label"], exact["epsilon_total"] = str(label), str(total)
    stated["epsilon_label"], stated["epsilon_total"] = float(label), float(total)


def _near(value: Any, random: Random) -> Any:
    """A number a little changed, or a tuple with one item changed, moved or exchanged."""
    if isinstance(value, tuple) and value:
        items, i, j = list(value), random.randrange(len(value)), random.randrange(len(value))
        kind = random.randrange(4)
        if kind == 0:
            items[i], items[j] = items[j], items[i]
        elif kind == 1 and isinstance(items[i], int) and isinstance(items[j], int):
            step = random.choice([1, 1 << random.randrange(62)])
            items[i], items[j] = items[i] + step, items[j] - step
        elif kind == 2:
            items[i] = items[j]
        else:
            items[i] = _near(items[i], random)
        return tuple(items)
    if isinstance(value, float):
        return random.choice([math.nextafter(value, math.inf), -value, value * 2, value + 1])
    return value + random.choice([1, -1]) if isinstance(value, int) else value


def _change_certificate(certificate: dict[str, Any], random: Random) -> None:
    places = list(_places(certificate))
    parent, key = random.choice(places)
    old = parent[key]
    kind = random.randrange(6)
    if kind == 0 and isinstance(old, str):
        parent[key] = old[:-1] + random.choice(["", "0", "1", "x"])
    elif kind == 0 and type(old) in (int, float):
        parent[key] = random.choice([old + 1, -old, old * 2, old / 2, type(old)(0)])
    elif kind <= 2:
        parent[key] = copy.deepcopy(random.choice(_NUMBERS + _OTHERS))
    elif kind == 3:
        del parent[key]
    elif kind == 4 and isinstance(parent, dict):
        parent[random.choice(["x", "epsilon", "epsilon_label"])] = random.choice(_NUMBERS)
    else:
        other, name = random.choice(places)
        parent[key], other[name] = other[name], parent[key]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for key, value in pairs:
        found.append((tree, key))
        if isinstance(value, dict | list) and value:
            found += _places(value)
    return found

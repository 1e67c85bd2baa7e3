"""Whatever is changed in an artifact of any form, the verifier says no."""

import functools
import json
import random
from fractions import Fraction

import numpy as np
import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.graph import canonical_json

from verifier.tests.artifacts import CLAIMED, NAMES, artifact
from verifier.tests.files import certificate_of, parts_of, rebuilt, with_certificate

FLIPS = 220


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    return artifact(request.param)


def test_the_original_verifies(model):
    report = check_bytes(model)
    assert report.ok, report.checks
    assert rebuilt(model, lambda certificate: None) == model


@pytest.mark.slow
def test_one_changed_byte_anywhere(model):
    generator = random.Random(7)
    places = {*range(64), *range(len(model) - 64, len(model))}
    while len(places) < FLIPS:
        places.add(generator.randrange(len(model)))
    for place in places:
        flip = generator.randrange(1, 256)
        mutant = bytearray(model)
        mutant[place] ^= flip
        assert not check_bytes(bytes(mutant)).ok, (place, flip)


def test_appended_metadata_that_onnxruntime_would_believe(model):
    forged = json.loads(onnx.load_from_string(model).metadata_props[0].value)
    forged["privacy"]["epsilon_label"] = 0.001
    prop = onnx.StringStringEntryProto(key="labeldp.certificate", value=canonical_json(forged))
    appended = onnx.ModelProto()
    appended.metadata_props.append(prop)
    assert not check_bytes(model + appended.SerializeToString()).ok
    assert not check_bytes(model + b"\0").ok
    assert not check_bytes(model + model).ok


@pytest.mark.slow
def test_swapped_or_changed_entries_of_every_constant(model):
    generator = random.Random(5)
    proto = onnx.load_from_string(model)
    tried = 0
    for index, tensor in enumerate(proto.graph.initializer):
        words = np.frombuffer(tensor.raw_data, dtype=np.uint64)
        if not len(words):
            continue
        places = [(i, i + 1) for i in range(min(len(words) - 1, 8)) if words[i] != words[i + 1]]
        places += [[generator.randrange(len(words)) for _ in range(2)] for _ in range(6)]
        for i, j in places:
            mutant, changed = onnx.load_from_string(model), words.copy()
            if words[i] != words[j]:
                changed[[i, j]] = changed[[j, i]]
            else:
                changed[i] ^= np.uint64(1 << generator.randrange(64))
            mutant.graph.initializer[index].raw_data = changed.tobytes()
            assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok, tensor.name
            tried += 1
    assert tried > 30


def test_nodes_left_out_doubled_or_rewired(model):
    proto = onnx.load_from_string(model)
    inputs = [value.name for value in proto.graph.input]
    for i in range(len(proto.graph.node)):
        for change in ("left out", "doubled", "rewired"):
            mutant = onnx.load_from_string(model)
            nodes = mutant.graph.node
            if change == "left out":
                del nodes[i]
            elif change == "doubled":
                nodes.append(nodes[i])
            else:
                nodes[i].input[0] = next(name for name in inputs if name != nodes[i].input[0])
            assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok, (i, change)


def places(value, path=()):
    """The path of everything in a certificate; of a list, of both ends."""
    if path:
        yield path
    keys = {0, len(value) - 1} if isinstance(value, list) and value else ()
    for key in value if isinstance(value, dict) else sorted(keys):
        yield from places(value[key], (*path, key))


def others(value):
    """What a forger could write instead of a value."""
    if isinstance(value, dict):
        left_out = [{k: v for k, v in value.items() if k != key} for key in value]
        return [{**value, "epsilon": 0.0}, *left_out, None]
    if isinstance(value, list):
        return [value[::-1], value[:-1], [*value, *value[-1:]], [], {}, None]
    if isinstance(value, str):
        return [value[:-1], f"{value}0", f"-{value}", f"{value}/7", "1e30000000", "", 7, None]
    if value is None:
        return [0, 0.0, "", "1", [], {}]
    swapped = int(value) if isinstance(value, float) else float(value)
    return [value + 1, value * 2, -value, 0, 0.0, -0.0, 2**63, swapped, bool(value), str(value)]


def altered(certificate, path, value):
    """The certificate with another value at a path."""
    copy = json.loads(json.dumps(certificate))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


def _name(path):
    """The field of a path, as the certificate lists it."""
    return ".".join(key for key in path if isinstance(key, str))


def _equivalents(certificate, path):
    """Values that say the same as the one at a path: no forgeries."""
    value = functools.reduce(lambda at, key: at[key], path, certificate)
    if _name(path).endswith(("optimality.alpha", "optimality.beta")) and isinstance(value, str):
        return [f"{value}0", *([f"-{value}"] if not float(value) else [])]
    if path == ("optimality", "radii"):  # a mirror image, where labels and prior are symmetric
        return [value[::-1]]
    return []


# A larger ε at the same δ is true, too.
TRUE = ("composition.epsilon_at_delta",)
FORGERIES = 60  # of a file; all of them if slow


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*NAMES, *CLAIMED])
def test_whatever_is_restated_is_declared_or_refused(name, whole):
    """Every field of every claim, by every other value, in the canonical file that follows.

    Where the writer makes no such file, or one of 2^63 limbs, the honest graph has the certificate.
    """
    model = artifact(name)
    domain, form, stated = parts_of(model)
    cases = [
        (path, other)
        for path in places(stated)
        for value in [functools.reduce(lambda at, key: at[key], path, stated)]
        for other in others(value)
        if canonical_json(other) != canonical_json(value)
        and other not in _equivalents(stated, path)
    ]
    spared = (*stated["fields"]["declared"], *TRUE)
    for path, other in cases if whole else random.Random(name).sample(cases, FORGERIES):
        field, certificate = _name(path), altered(stated, path, other)
        try:
            if field.startswith("portable"):
                raise ValueError
            forged = form.rebuild(domain, certificate)
        except (AttributeError, KeyError, TypeError, ValueError):
            forged = with_certificate(model, certificate)
        report = check_bytes(forged, run_graph=False)
        may_hold = any(field == one or field.startswith(f"{one}.") for one in spared)
        assert may_hold or not report.ok, (path, other)


def _smaller(c):
    """An ε below what the integers have, in all four places."""
    half = Fraction(c["exact"]["epsilon_label_bound"]) / 2
    total = half + Fraction(c["exact"]["epsilon_prior"])
    c["privacy"].update(epsilon_label=float(half), epsilon_total=float(total))
    c["exact"].update(epsilon_label=str(half), epsilon_total=str(total))


TOGETHER = {
    "smaller ε": _smaller,
    "negative ε of the prior": lambda c: (
        c["privacy"].update(epsilon_prior=-0.5, epsilon_total=c["privacy"]["epsilon_label"] - 0.5),
        c["exact"].update(epsilon_prior="-1/2"),
    ),
    "a bound from nowhere": lambda c: c.update(
        optimality={"over": "any", "amount": "0", "alpha": ["1"] * c["labels"], "beta": ["0"]}
    ),
    "biases": lambda c: c["utility"].update(biases=[0.0] * c["labels"]),
    "no rows": lambda c: [table.update(size=0) for table in c["groups"]["tables"]],
}


@pytest.mark.parametrize("change", TOGETHER)
def test_several_fields_that_are_restated_together(model, change):
    if change == "no rows" and "groups" not in certificate_of(model):
        return
    assert not check_bytes(rebuilt(model, TOGETHER[change])).ok


def test_a_certificate_from_another_artifact(model):
    for other in NAMES:
        if (donor := artifact(other)) == model:
            continue
        stated = json.loads(onnx.load_from_string(donor).metadata_props[0].value)

        def take(certificate, stated=stated):
            certificate.clear()
            certificate.update(stated)

        try:
            forged = rebuilt(model, take)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # not even the writer makes a file of the two
        assert not check_bytes(forged).ok, other


def test_insecure_artifacts_fail_and_say_so(model):
    report = check_bytes(rebuilt(model, lambda c: c.update(insecure="made with a test seed")))
    assert not report.ok
    assert report.checks[-1].name == "secure"
    assert report.checks[-1].detail == "the certificate says: 'made with a test seed'"


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 100, b"not a model", b"PAR1", bytes(range(256)) * 50]
)
def test_any_other_bytes(data):
    report = check_bytes(data)
    assert not report.ok
    assert report.checks[0].name == "model"


def test_hostile_sizes_are_refused_without_work(model):
    huge = {"kind": "integer", "min": 0, "max": 10**15, "out_of_domain": "clamp"}
    assert not check_bytes(rebuilt(model, lambda c: c["label"].update(domain=huge))).ok
    deep = model.replace(b'{"auto"', b"[" * 10 + b'{"auto"')
    assert deep != model
    assert not check_bytes(deep).ok

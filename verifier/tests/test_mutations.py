"""Whatever is changed in an artifact of any form, the verifier says no."""

import json
import random
from fractions import Fraction

import numpy as np
import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.graph import canonical_json

from verifier.tests.artifacts import NAMES, artifact
from verifier.tests.files import rebuilt

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


def test_removed_or_inserted_bytes(model):
    generator = random.Random(8)
    for _ in range(40):
        place = generator.randrange(len(model))
        assert not check_bytes(model[:place] + model[place + 1 :]).ok
        assert not check_bytes(model[:place]).ok
        extra = bytes([generator.randrange(256)])
        assert not check_bytes(model[:place] + extra + model[place:]).ok


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


def _smaller(c):
    """An ε below what the integers have, in all four places."""
    half = Fraction(c["exact"]["epsilon_label_bound"]) / 2
    total = half + Fraction(c["exact"]["epsilon_prior"])
    c["privacy"].update(epsilon_label=float(half), epsilon_total=float(total))
    c["exact"].update(epsilon_label=str(half), epsilon_total=str(total))


PROVED_CHANGES = {
    "form": lambda c: c.update(form="table" if c["form"] == "window" else "window"),
    "labels": lambda c: c.update(labels=c["labels"] + 1),
    "outputs": lambda c: c.update(outputs=c["outputs"] + 1),
    "outputs as a float": lambda c: c.update(outputs=float(c["outputs"])),
    "bound": lambda c: c["privacy"].update(epsilon_label_bound=0.01),
    "exact bound": lambda c: c["exact"].update(epsilon_label_bound="1/100"),
    "looser bound": lambda c: c["exact"].update(
        epsilon_label_bound=str(Fraction(c["exact"]["epsilon_label_bound"]) + Fraction(1, 100))
    ),
    "ratio": lambda c: c["exact"].update(realised_ratio="1"),
    "bias": lambda c: c["utility"].update(largest_bias=0.0),
    "exact bias": lambda c: c["exact"].update(largest_bias="0"),
    "loss": lambda c: c["utility"].update(noisy_label_loss=0.0),
    "exact loss": lambda c: c["exact"].update(noisy_label_loss="0"),
    "lower bound": lambda c: c["utility"].update(loss_lower_bound=0.1),
    "gap": lambda c: c["utility"].update(certified_gap=0.0),
    "tables digest": lambda c: c["digests"].update(tables="0" * 64),
    "smaller ε": _smaller,
    "total": lambda c: c["privacy"].update(epsilon_total=0.1),
    "number beside its exact": lambda c: c["privacy"].update(epsilon_prior=0.25),
    "negative ε of the prior": lambda c: (
        c["privacy"].update(epsilon_prior=-0.5, epsilon_total=c["privacy"]["epsilon_label"] - 0.5),
        c["exact"].update(epsilon_prior="-1/2"),
    ),
    "adjacency": lambda c: c["privacy"].update(adjacency="add or remove one row"),
    "prior": lambda c: c["prior"].update(weights=[1] * (c["labels"] - 1)),
    "other prior": lambda c: c["prior"].update(weights=[0] * (c["labels"] - 1) + [1]),
    "what is proved": lambda c: c["fields"].update(declared=[]),
    "version": lambda c: c.update(format_version="2.0"),
    "an extra field": lambda c: c["privacy"].update(epsilon_for_everyone=0.0),
    "an extra section": lambda c: c.update(epsilon_label_bound=1e-9),
    "a boolean for a number": lambda c: c.update(labels=True),
    "a huge exponent": lambda c: c["exact"].update(epsilon_label="1e30000000"),
    "a prior of another kind": lambda c: c["prior"].update(kind="unheard-of"),
    "root mean square": lambda c: c["utility"].update(rms_bias=0.0),
    "biases": lambda c: c["utility"].update(biases=[0.0] * c["labels"]),
    "a bound from nowhere": lambda c: c.update(
        optimality={"over": "any", "amount": "0", "alpha": ["1"] * c["labels"], "beta": ["0"]}
    ),
    "a missing part": lambda c: c.pop("utility"),
}
# Every label has the same loss under any prior: what was restated is true.
SAME_LOSS = {(name, "other prior") for name in ("window of text", "sets")}
CASES = [(a, b) for a in NAMES for b in sorted(PROVED_CHANGES) if (a, b) not in SAME_LOSS]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_restated_fields_in_a_canonically_rebuilt_file(name, change):
    honest = artifact(name)
    forged = rebuilt(honest, PROVED_CHANGES[change])
    assert forged != honest
    assert not check_bytes(forged).ok


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


def test_declared_fields_can_be_restated_and_are_listed_as_declared(model):
    report = check_bytes(rebuilt(model, lambda c: c.update(name="another")))
    assert report.ok
    assert "name" in report.to_json()["declared"]
    assert "name" not in report.to_json()["proved"]


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 100, b"not a model", b"PAR1", bytes(range(256)) * 50]
)
def test_any_other_bytes(data):
    report = check_bytes(data)
    assert not report.ok
    assert report.checks[0].name == "model"


def test_a_model_without_a_certificate(model):
    proto = onnx.load_from_string(model)
    del proto.metadata_props[:]
    assert [c.name for c in check_bytes(proto.SerializeToString()).checks if not c.ok] == [
        "certificate"
    ]


def test_hostile_sizes_are_refused_without_work(model):
    huge = {"kind": "integer", "min": 0, "max": 10**15, "out_of_domain": "clamp"}
    assert not check_bytes(rebuilt(model, lambda c: c["label"].update(domain=huge))).ok
    deep = model.replace(b'{"auto"', b"[" * 10 + b'{"auto"')
    assert deep != model
    assert not check_bytes(deep).ok

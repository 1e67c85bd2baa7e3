"""Whatever is changed in an artifact, the verifier says no."""

import json
import random

import numpy as np
import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.artifact import canonical_json
from labeldp_verify.decode import read_form
from labeldp_verify.decode.file import read_certificate, read_domain, read_model
from labeldp_verify.decode.window import WindowFile

from tests.helpers import INTEGER_SPEC, compile_text

CATEGORICAL_SPEC = """
version: 1
name: example
label:
  column: y
  domain: {kind: categorical, values: [red, green, blue]}
  out_of_domain: {default: green}
loss: zero_one
privacy: {epsilon: 1.5}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""


@pytest.fixture(scope="module", params=[INTEGER_SPEC, CATEGORICAL_SPEC])
def model(request):
    return compile_text(request.param).model


def parts(model):
    proto = read_model(model)
    certificate = read_certificate(proto).to_json()
    domain = read_domain(certificate["label"]["domain"])
    return domain, read_form(certificate["form"], proto, domain), certificate


def rebuilt(model, change):
    """The canonical file after ``change(certificate)``: what a forger with the writer can make."""
    domain, form, certificate = parts(model)
    change(certificate)
    return form.rebuild(domain, certificate)


def test_the_original_verifies(model):
    report = check_bytes(model)
    assert report.ok, report.checks
    assert rebuilt(model, lambda certificate: None) == model


def test_one_changed_byte_anywhere(model):
    generator = random.Random(7)
    places = {*range(0, 64), *range(len(model) - 64, len(model))}
    places.update(generator.randrange(len(model)) for _ in range(400))
    for place in places:
        flip = generator.randrange(1, 256)
        mutant = bytearray(model)
        mutant[place] ^= flip
        assert not check_bytes(bytes(mutant)).ok, (place, flip)


def test_removed_or_inserted_bytes(model):
    generator = random.Random(8)
    for _ in range(100):
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


def test_swapped_table_entries(model):
    proto = onnx.load_from_string(model)
    for index, tensor in enumerate(proto.graph.initializer):
        words = np.frombuffer(tensor.raw_data, dtype=np.uint64).copy()
        for i in range(min(len(words) - 1, 20)):
            if words[i] == words[i + 1]:
                continue
            mutant = onnx.load_from_string(model)
            swapped = words.copy()
            swapped[[i, i + 1]] = swapped[[i + 1, i]]
            mutant.graph.initializer[index].raw_data = swapped.tobytes()
            report = check_bytes(mutant.SerializeToString(deterministic=True))
            assert not report.ok, tensor.name


PROVED_CHANGES = {
    "form": lambda c: c.update(form="table"),
    "labels": lambda c: c.update(labels=c["labels"] + 1),
    "outputs": lambda c: c.update(outputs=c["outputs"] + 1),
    "outputs as a float": lambda c: c.update(outputs=float(c["outputs"])),
    "bound": lambda c: c["privacy"].update(epsilon_label_bound=0.01),
    "exact bound": lambda c: c["exact"].update(epsilon_label_bound="1/100"),
    "looser bound": lambda c: c["exact"].update(epsilon_label_bound="99/100"),
    "ratio": lambda c: c["exact"].update(realised_ratio="1"),
    "bias": lambda c: c["utility"].update(largest_bias=0.0),
    "exact bias": lambda c: c["exact"].update(largest_bias="0"),
    "loss": lambda c: c["utility"].update(noisy_label_loss=0.0),
    "exact loss": lambda c: c["exact"].update(noisy_label_loss="0"),
    "lower bound": lambda c: c["utility"].update(loss_lower_bound=0.1),
    "gap": lambda c: c["utility"].update(certified_gap=0.0),
    "tables digest": lambda c: c["digests"].update(tables="0" * 64),
    "smaller ε": lambda c: (
        c["privacy"].update(epsilon_label=0.5, epsilon_total=0.5),
        c["exact"].update(epsilon_label="1/2", epsilon_total="1/2"),
    ),
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
# Randomized response has the same loss under every prior.
CASES = [(INTEGER_SPEC, name) for name in sorted(PROVED_CHANGES)]
CASES += [(CATEGORICAL_SPEC, name) for name in sorted(PROVED_CHANGES) if name != "other prior"]


@pytest.mark.parametrize(("spec", "name"), CASES)
def test_restated_fields_in_a_canonically_rebuilt_file(spec, name):
    model = compile_text(spec).model
    forged = rebuilt(model, PROVED_CHANGES[name])
    assert forged != model
    assert not check_bytes(forged).ok


def test_a_certificate_from_another_artifact(model):
    other = compile_text(INTEGER_SPEC.replace("epsilon: 1.0", "epsilon: 0.5"))

    def take(certificate):
        certificate.clear()
        certificate.update(other.certificate.to_json())

    assert not check_bytes(rebuilt(model, take)).ok


def test_an_enlarged_window_is_not_private():
    # One unit of base weight moved to another output: rows still sum to one, ε no longer holds.
    domain, form, certificate = parts(compile_text(INTEGER_SPEC, word_bits=16).model)
    r = form.randomizer
    fields = {name: getattr(r, name) for name in r.__dataclass_fields__}
    fields["base"] = (r.base[0] - 40, r.base[1] + 40, *r.base[2:])
    forged = WindowFile(type(r)(**fields), form.grid).rebuild(domain, certificate)
    report = check_bytes(forged)
    assert not report.ok
    assert report.checks[-1].name == "privacy"
    assert "more than e^1" in report.checks[-1].detail


def test_insecure_artifacts_fail_and_say_so(model):
    report = check_bytes(rebuilt(model, lambda c: c.update(insecure="made with a test seed")))
    assert not report.ok
    assert report.checks[-1].name == "secure"
    assert report.checks[-1].detail == "the certificate says: 'made with a test seed'"


def test_declared_fields_can_be_restated_and_are_listed_as_declared(model):
    def rename(certificate):
        certificate["name"] = "another"

    report = check_bytes(rebuilt(model, rename))
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

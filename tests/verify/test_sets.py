"""Sets of labels: whatever a certificate claims of them beside the truth, the verifier says no."""

import copy

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.claims.whole_file import DECLARED, PROVED
from labeldp_verify.graph import write_model

from tests.fixtures.compiled import compile_text, sets_spec
from tests.mechanisms.test_subset_selection import text_of


@pytest.fixture(scope="module")
def sets():
    return compile_text(text_of(6, 0.5))


@pytest.fixture(scope="module")
def single():
    return compile_text(text_of(4, 5))


def failed(artifact, **changes):
    """The step at which the file fails with these changes to ``sets`` of its certificate."""
    stated = copy.deepcopy(artifact.certificate.to_json())
    stated["sets"].update(changes)
    return _failed(artifact, stated)


def _failed(artifact, stated):
    decoded = artifact.only
    report = check_bytes(write_model(decoded.domain, artifact.randomizer, stated))
    return report.checks[-1].name if not report.ok else None


def test_the_honest_files_verify(sets, single):
    for artifact in (sets, single):
        assert failed(artifact) is None
    assert sets.certificate.sets.blocks == sets.randomizer.sets.to_hex()


def test_other_blocks_fail(sets):
    blocks = sets.certificate.sets.blocks
    for other in (blocks[::-1], [*blocks[1:], blocks[0]]):  # the loss is another one, too
        assert failed(sets, blocks=other) in ("utility", "sets")
    assert failed(sets, blocks=blocks[:-1]) == "tables"
    assert failed(sets, blocks=[*blocks, blocks[0]]) == "tables"


@pytest.mark.parametrize("text", ["7", "0007", "0x7", "FF", " 7", "7f", "-7", "", "é7", "7_"])
def test_a_block_is_written_in_one_way(sets, text):
    blocks = sets.certificate.sets.blocks
    assert failed(sets, blocks=[text, *blocks[1:]]) == "tables"


def test_a_file_without_the_claim_is_no_set(sets):
    stated = sets.certificate.to_json()
    del stated["sets"]
    stated["fields"] = {
        "proved": list(PROVED),
        "declared": list(DECLARED),
    }
    assert _failed(sets, stated) == "tables"


def test_few_sets_of_many_labels_are_refused_before_they_are_looked_at(sets):
    stated = copy.deepcopy(sets.certificate.to_json())
    stated["sets"]["blocks"] = ["0"] * 150_000
    assert _failed(sets, stated) == "tables"
    domain = {"kind": "integer", "min": 0, "max": 149_999, "out_of_domain": "clamp"}
    stated["label"]["domain"], stated["labels"] = domain, 150_000
    assert _failed(sets, stated) == "tables"


def test_sets_are_of_classes_under_the_zero_one_loss():
    text = sets_spec("{kind: integer, min: 0, max: 9}", "clamp", 0.5)
    integers = compile_text(text)
    stated = copy.deepcopy(integers.certificate.to_json())
    assert _failed(integers, stated) is None
    assert (
        _failed(integers, {**stated, "utility": {**stated["utility"], "biases": []}}) == "utility"
    )
    single = compile_text(text.replace("epsilon: 0.5", "epsilon: 8"))
    squared = compile_text(
        text.replace("epsilon: 0.5", "epsilon: 8")
        .replace("zero_one", "squared")
        .replace("subset_selection", "randomized_response")
    ).certificate.to_json()
    stated = copy.deepcopy(single.certificate.to_json())
    for part in ("noisy_label_loss", "loss"):
        stated["utility"][part] = squared["utility"][part]
    stated["exact"]["noisy_label_loss"] = squared["exact"]["noisy_label_loss"]
    assert _failed(single, stated) == "sets"

"""The examples for Node, browsers and C++ give Python's labels, and refuse what Python refuses."""

import os
import re
import struct
from collections import Counter

import pytest

from tests.languages import harness
from tests.languages.cases import DRAWS, build_plan
from tests.languages.grouped import add_groups
from tests.languages.hostile import ROW, add_replaced_rows
from tests.languages.joint import add_joint
from tests.languages.sets import add_sets


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    plan = build_plan(tmp_path_factory.mktemp("languages"))
    add_replaced_rows(plan)
    add_groups(plan)
    add_sets(plan)
    add_joint(plan)
    return plan


@pytest.fixture(scope="module", params=harness.LANGUAGES)
def language(request):
    reason = harness.missing(request.param)
    if reason and os.environ.get("LABELDP_ALL"):
        pytest.fail(f"{reason}: see build/languages/install.log")
    if reason:
        pytest.skip(f"{reason}: run tests/languages/install")
    return request.param


@pytest.fixture(scope="module")
def results(language, plan):
    """What a language answered, by the case's name, and what its demo printed."""
    asked = [(name, case) for name, case in plan.cases.items() if is_for(language, case)]
    answers, demo = harness.answers(language, [case for _, case in asked], plan.directory)
    assert len(answers) == len(asked), demo
    return {name: answer for (name, _), answer in zip(asked, answers, strict=True)}, demo


def is_for(language, case):
    """In C++ the type of the labels is chosen when the program is compiled."""
    if language == "cpp":
        return case.get("type") != "javascript" and "options" not in case
    return "batches" not in case or case["type"] == "javascript"


def chosen(plan, results, prefix):
    """Name, answer and expectation of the cases of one kind."""
    found = [(n, a, plan.expected[n]) for n, a in results[0].items() if n.startswith(prefix)]
    assert found
    return found


def as_read(text, value, language):
    """What a driver printed of a value: C++ has the 64 bits of a double."""
    if not isinstance(value, float):
        return type(value)(text)
    return struct.unpack(">d", bytes.fromhex(text))[0] if language == "cpp" else float(text)


@pytest.mark.parametrize("kind", ["same words", "by group", "sets", "joint"])
def test_same_words_same_labels(plan, results, kind):
    for name, answer, expected in chosen(plan, results, f"{kind}: "):
        assert answer.get("error") is None, (name, answer)
        assert answer["outputs"] == (expected if kind == "joint" else [expected]), name


@pytest.mark.parametrize("what", ["kind", "groups", "columns"])
def test_what_is_wrong_is_an_error_before_anything_is_drawn(plan, results, what):
    for name, answer, reason in chosen(plan, results, f"wrong {what}: "):
        assert "outputs" not in answer, name
        assert re.search(reason, answer["error"]), (name, answer)
        assert answer["error"].isprintable(), name


def test_no_label_changes_how_another_is_read(plan, results):
    cases = chosen(plan, results, "one row replaced: ")
    for name, answer, expected in cases:
        assert answer.get("error") is None, (name, answer)
        outputs = answer["outputs"]
        assert len(outputs) == len(expected) > 1
        for i, batch in enumerate(outputs):
            assert batch[:ROW] == outputs[0][:ROW], (name, i)
            assert batch[ROW + 1 :] == outputs[0][ROW + 1 :], (name, i)
            assert batch == expected[i], (name, i)


def test_fresh_words_follow_the_certified_counts(plan, results):
    for name, answer, chances in chosen(plan, results, "fresh words: "):
        for outputs in answer["outputs"]:
            seen = Counter(outputs)
            assert set(seen) <= set(chances), name
            degrees = len(chances) - 1
            chi_square = sum((seen[v] - DRAWS * p) ** 2 / (DRAWS * p) for v, p in chances.items())
            # A chance below 1e-8 (Laurent and Massart's bound, x = 20).
            assert chi_square < degrees + 2 * (20 * degrees) ** 0.5 + 40, name


def test_no_word_serves_two_labels_or_two_calls(plan, results):
    for name, answer, _ in chosen(plan, results, "fresh words: "):
        first, second = answer["outputs"]
        chunks = [first, second]
        for size in (8192, 16384, 32768):  # draws and chunks of the examples
            chunks += [first[:size], first[size : 2 * size]]
        for i in range(0, len(chunks), 2):
            assert chunks[i] != chunks[i + 1], (name, i)


def test_members_are_the_labels_in_a_set(plan, results, language):
    for name, answer, expected in chosen(plan, results, "members: "):
        assert answer.get("error") is None, (name, answer)
        assert len(answer["outputs"]) == len(expected), name
        for i, (found, labels) in enumerate(zip(answer["outputs"], expected, strict=True)):
            if labels is not None:
                assert found == labels, (name, i)
                continue
            error = "invalid_argument: " if language == "cpp" else "TypeError: "
            reason = r"(expected the number of a set, 0 to \d+|this is not a private label of .*)"
            assert re.fullmatch(error + reason, found), (name, i, found)


def test_members_are_combinations(plan, results, language):
    for name, answer, expected in chosen(plan, results, "combinations: "):
        assert answer.get("error") is None, (name, answer)
        assert len(answer["outputs"]) == len(expected), name
        for i, (found, labels) in enumerate(zip(answer["outputs"], expected, strict=True)):
            if labels is None:
                assert re.match(
                    "(invalid_argument|TypeError): (expected the number|this is no)", found
                )
                continue
            assert len(found) == len(labels), (name, i)
            for texts, label in zip(found, labels, strict=True):
                read = [as_read(*pair, language) for pair in zip(texts, label, strict=True)]
                assert read == list(label), (name, i)


def test_other_artifacts_have_no_members(plan, results):
    for name, answer, reason in chosen(plan, results, "no sets"):
        assert [text.partition(": ")[2] for text in answer["outputs"]] == [reason, reason], name


def test_refusals(plan, results):
    for name, answer, reason in chosen(plan, results, "refused: "):
        assert "outputs" not in answer, name
        assert re.search(reason, answer["error"]), (name, answer)
        assert "ArtifactError" in answer["error"], (name, answer)
        assert answer["error"].isprintable() and len(answer["error"]) < 600, (name, answer)


def test_files_with_rules_about_rows_load_for_prepared_rows(plan, results):
    for name, answer, _ in chosen(plan, results, "prepared: "):
        assert answer == {"outputs": []}, name


def test_the_demo(plan, results):
    _, demo = results
    assert "example: ε = 1" in demo
    lines = re.findall(r"(\S+) -> (\S+)", demo)
    assert [label for label, _ in lines[:3]] == ["0", "3", "12"]
    assert len(lines) == 5
    assert {round(float(noisy), 4) for _, noisy in lines} <= plan.demo_outputs

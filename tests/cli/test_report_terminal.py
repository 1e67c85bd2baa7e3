"""``labeldp report``: the matrix it shows is the one that the integers define, word by word."""

import json
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from labeldp_verify.analysis.probabilities import (
    columns,
    equally_likely,
    matrix,
    noise_quantiles,
    range_sums,
    row,
    value,
)
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, TableRandomizer
from labeldp_verify.graph import write_model
from labeldp_verify.opening import open_artifact

from labeldp_compile.cli import main
from labeldp_compile.cli.output import clipped, text_table, width
from labeldp_compile.cli.report_terminal import ASCII_SHADES, COLOURED, shaded, terminal_heat_map
from labeldp_compile.report.facts import heat_map
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.integers import plain_counts

MECHANISMS = {
    "window, bins": "{kind: rr_on_bins}",
    "window, unbiased": "{kind: optimal_unbiased}",
    "window, top": "{kind: rr_top_k, k: 3}",
    "table": "{kind: exponential}",
    "additive": "{kind: laplace}",
    "additive, clipped": "{kind: staircase, clip: true, lattice: 0.5}",
}
BITS = 9


def labeldp(*arguments, **options):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)


def compiled(mechanism, text=INTEGER_SPEC, bits=BITS):
    return compile_text(text.replace("{kind: rr_on_bins}", mechanism), word_bits=bits)


def write(artifact, directory):
    path = directory / "artifact.onnx"
    path.write_bytes(artifact.model)
    return path


def counted(randomizer, y):
    """How many words of a label lead to each output value, by definition."""
    if isinstance(randomizer, TableRandomizer):
        return Counter(dict(zip(randomizer.values, randomizer.counts[y], strict=True)))
    if not isinstance(randomizer, AdditiveRandomizer):
        return plain_counts(randomizer, y)
    r, counts = randomizer, Counter()
    for b, i in product(range(len(r.blocks)), range(r.period)):
        block = b - r.reach - 1
        point = y * r.spacing + block * r.period + i
        point = min(max(point, r.low), r.high)
        counts[r.value(point)] += r.blocks[b] * r.shapes[int(block >= 0)][i]
    return counts


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_matrix_is_the_one_that_the_words_define(tmp_path, name):
    artifact = compiled(MECHANISMS[name])
    r = artifact.randomizer
    document = json.loads(labeldp("report", write(artifact, tmp_path), "--json").stdout)
    assert document["ok"] is True and document["matrix"]["exact"] is True
    values = [facts["value"] for facts in document["outputs"]]
    total = equally_likely(r)
    assert document["matrix"]["labels"] == list(range(10))
    floats = matrix(r, range(10))
    for y, shown in enumerate(document["matrix"]["rows"]):
        exact = counted(r, y)
        assert sum(row(r, y)) == total
        assert [Fraction(p) for p in shown] == [Fraction(exact[v], total) for v in values]
        np.testing.assert_allclose(floats[y], [exact[v] / total for v in values], rtol=1e-13)
    for i, facts in enumerate(document["outputs"]):
        np.testing.assert_allclose(next(columns(r, [i])), floats[:, i], rtol=1e-13)
        assert facts["least"] == pytest.approx(floats[:, i].min(), rel=1e-13)
        assert facts["most"] == pytest.approx(floats[:, i].max(), rel=1e-13)
        assert (facts["base"] is not None) == (r.form == "window")


@pytest.mark.parametrize("name", MECHANISMS)
def test_moments_follow_from_the_matrix(tmp_path, name):
    artifact = compiled(MECHANISMS[name])
    r = artifact.randomizer
    document = json.loads(labeldp("report", write(artifact, tmp_path), "--json").stdout)
    values = np.array([float(value(r, i)) for i in range(r.outputs)])
    for y, facts in enumerate(document["labels"]):
        p = matrix(r, [y])[0]
        mean = p @ values
        assert facts["mean"] == pytest.approx(mean, abs=1e-9)
        assert facts["bias"] == pytest.approx(mean - y, abs=1e-9)
        assert facts["deviation"] == pytest.approx(np.sqrt(p @ (values - mean) ** 2), rel=1e-6)
        assert facts["unchanged"] == pytest.approx(p[values == y].sum(), rel=1e-12)


def test_windows_cover_what_the_label_adds_to_the_base(tmp_path):
    artifact = compiled(MECHANISMS["window, unbiased"])
    r = artifact.randomizer
    document = json.loads(labeldp("report", write(artifact, tmp_path), "--json").stdout)
    for y, facts in enumerate(document["labels"]):
        window = facts["window"]
        assert window["end"] - window["start"] == r.window
        added = Counter({part["output"]: part["words"] for part in window["outputs"]})
        counts = row(r, y)
        assert [added[i] for i in range(r.outputs)] == [
            count - base for count, base in zip(counts, r.base, strict=True)
        ]


def test_the_noise_of_an_additive_randomizer(tmp_path):
    artifact = compiled(MECHANISMS["additive"])
    r = artifact.randomizer
    noise = Counter()
    for b, i in product(range(len(r.blocks)), range(r.period)):
        block = b - r.reach - 1
        noise[block * r.period + i] += r.blocks[b] * r.shapes[int(block >= 0)][i]
    total = equally_likely(r)
    document = json.loads(labeldp("report", write(artifact, tmp_path), "--json").stdout)["noise"]
    assert document["mean_distance"] == pytest.approx(
        sum(abs(n) * w for n, w in noise.items()) / total
    )
    assert document["deviation"] == pytest.approx(
        (sum(n * n * w for n, w in noise.items()) / total) ** 0.5
    )
    for share, limit in zip((0.3, 0.9), noise_quantiles(r, (0.3, 0.9)), strict=True):
        within = sum(w for n, w in noise.items() if abs(n) <= limit) / total
        closer = sum(w for n, w in noise.items() if abs(n) < limit) / total
        assert closer < share <= within
    words = labeldp("report", write(artifact, tmp_path), "--verbose").stdout
    assert "folded tails" in words and "mean |noise|" in words


def test_small_matrices_are_tables_with_every_probability(tmp_path):
    artifact = compiled("{kind: rr_on_bins}")
    shown = labeldp("report", write(artifact, tmp_path)).stdout.splitlines()
    start = shown.index("Pr[output | label], one row per label")
    for y in range(10):
        cells = shown[start + 2 + y].split()
        assert cells[0] == str(y)
        exact = counted(artifact.randomizer, y)
        expected = [exact[v] / 2**BITS for v in artifact.randomizer.values]
        assert [float(cell) for cell in cells[1:]] == pytest.approx(expected, abs=1e-6)
    assert shown[-1].startswith("ε of a label is at most ")


def test_large_matrices_are_shades_that_fit_the_terminal(tmp_path):
    text = INTEGER_SPEC.replace("max: 9", "max: 299").replace(
        "{kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}", "{kind: uniform}"
    )
    path = write(compiled("{kind: randomized_response}", text, bits=None), tmp_path)
    result = labeldp("report", path, env={"COLUMNS": "70", "LINES": "25"})
    lines = result.stdout.splitlines()
    shades = [line for line in lines if "│" in line]
    assert result.exit_code == 0 and 12 <= len(shades) <= 25
    assert max(map(len, shades)) <= 70 and "█" in result.stdout and "\x1b" not in result.stdout
    assert shades[0].split()[0] == "0" and shades[-1].split()[0] == "299"
    document = json.loads(labeldp("report", path, "--json").stdout)
    assert document["matrix"]["exact"] is False and "float64" in document["matrix"]["note"]
    assert len(document["matrix"]["rows"]) == 300
    one = labeldp("report", path, "--label", "7", "--label", "299", "--matrix").stdout
    (seven,) = [line for line in one.splitlines() if len(line.split()) == 301 and line[0] == "7"]
    assert seven
    chosen = json.loads(labeldp("report", path, "--json", "--label", "7").stdout)
    assert [facts["label"] for facts in chosen["labels"]] == [7]


def test_categories_are_shown_by_name_and_cannot_command_the_terminal(tmp_path):
    names = ["rot", "日本語", "a\x1b[31mred", "é" * 40]
    text = INTEGER_SPEC.replace(
        "domain: {kind: integer, min: 0, max: 9}",
        f"domain: {{kind: categorical, values: {json.dumps(names)}}}\n"
        "  out_of_domain: {default: rot}",
    ).replace("[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]", "[4, 3, 2, 1]")
    text = text.replace("loss: squared", "loss: zero_one")
    path = write(compiled("{kind: randomized_response}", text), tmp_path)
    result = labeldp("report", path, "-v")
    assert result.exit_code == 0 and "\x1b" not in result.stdout
    assert "日本語" in result.stdout and "\N{REPLACEMENT CHARACTER}[31mred" in result.stdout
    assert "mean" not in result.stdout and "unchanged" in result.stdout
    result = labeldp("report", path, "--label", "日本")
    assert result.exit_code == 2 and "did you mean '日本語'?" in result.stderr
    document = json.loads(labeldp("report", path, "--json", "--label", "日本語").stdout)
    assert document["matrix"]["labels"] == ["日本語"]
    assert document["labels"][0]["mean"] is None


def test_nothing_is_shown_of_a_file_that_does_not_verify(tmp_path):
    artifact = compiled("{kind: rr_on_bins}")
    certificate = {**artifact.certificate.to_json(), "labels": 11}
    (tmp_path / "forged.onnx").write_bytes(write_model(_domain(), artifact.randomizer, certificate))
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    for name, failed in {"forged": "number of labels", "junk": "not an ONNX model"}.items():
        result = labeldp("report", tmp_path / f"{name}.onnx")
        assert result.exit_code == 1 and result.stdout == "" and failed in result.stderr
        result = labeldp("report", tmp_path / f"{name}.onnx", "--json")
        document = json.loads(result.stdout)
        assert result.exit_code == 1 and document["ok"] is False and failed in document["failed"]
    assert labeldp("report", tmp_path / "none.onnx").exit_code == 2


def _domain():
    from labeldp_verify.forms import IntegerDomain

    return IntegerDomain(0, 9)


@pytest.mark.parametrize("label", ["10", "-1", "0.5", "nan", "one", ""])
def test_labels_outside_the_domain_are_refused(tmp_path, label):
    path = write(compiled("{kind: rr_on_bins}"), tmp_path)
    result = labeldp("report", path, "--label", label)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_real_labels_take_the_nearest_point(tmp_path):
    text = INTEGER_SPEC.replace(
        "{kind: integer, min: 0, max: 9}", "{kind: real, min: -1.0, max: 1.0, points: 10}"
    )
    path = write(compiled("{kind: rr_on_bins}", text), tmp_path)
    document = json.loads(labeldp("report", path, "--json", "--label", "0.99").stdout)
    assert [facts["label"] for facts in document["labels"]] == [1.0]


def test_the_whole_matrix_is_refused_where_nobody_could_read_it(tmp_path):
    text = INTEGER_SPEC.replace("max: 9", "max: 1099").replace(
        "{kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}", "{kind: uniform}"
    )
    path = write(compiled("{kind: randomized_response}", text, bits=None), tmp_path)
    result = labeldp("report", path, "--matrix")
    assert result.exit_code == 2 and "choose some labels" in result.stderr


def test_only_equal_outputs_are_found():
    r = compiled(MECHANISMS["additive, clipped"]).randomizer
    (point,) = r.points_of(Fraction(3))
    assert value(r, point - r.low) == 3.0
    assert not r.points_of(Fraction(1, 3)) and not r.points_of(Fraction(100))


def test_shades_add_up_neighbours_and_mark_the_largest():
    names = tuple("abcdefghij")
    randomizer = TableRandomizer(5, ((1,) * 10, (1,) * 9 + (11,)), names)
    row, high = range_sums(randomizer, [0, 1], np.array([0, 3, 6, 9, 10])) * 32 / 20
    np.testing.assert_allclose(row, [0.15, 0.15, 0.15, 0.05])
    np.testing.assert_allclose(high, [0.15, 0.15, 0.15, 0.55])
    decoded, ends = Table(CategoricalDomain(names[:2], "a"), randomizer, {}), ("0", "9")
    heat = heat_map(decoded, most=5)
    np.testing.assert_allclose(heat.shares.T * 32, [[2] * 5, [2] * 4 + [12]])
    lines = shaded(heat, ["a", "bb"], ends, columns=12, shades=ASCII_SHADES)
    assert lines[1].endswith("#│") and "#" not in lines[0]
    coloured = shaded(heat, ["a", "bb"], ends, columns=12, shades=COLOURED)
    assert coloured[0].endswith("\x1b[0m│")


@pytest.mark.parametrize("columns", [20, 41, 80, 200])
@pytest.mark.parametrize("name", MECHANISMS)
def test_shades_are_the_cells_of_the_page_in_the_room_there_is(tmp_path, name, columns):
    """Every row sums to what is shown of it, and no line is wider than the terminal."""
    decoded = open_artifact(write(compiled(MECHANISMS[name]), tmp_path)).table(0)
    labels, names = range(10), [f"label {y}" for y in range(10)]
    lines = terminal_heat_map(decoded, labels, names, columns=columns)
    assert len({len(line) for line in lines[:10]}) == 1 and len(lines[0]) <= max(columns, 18)
    most = max(columns - 10, 8)
    heat = heat_map(decoded, labels, most - 1)
    assert len(heat.shares) <= most
    page = heat_map(decoded)
    assert heat.outputs == page.outputs and heat.tails == page.tails
    np.testing.assert_allclose(heat.shares.sum(axis=0), page.shares.sum(axis=0), rtol=1e-12)


def test_tables_align_wide_characters():
    lines = text_table(["name", "n"], [["日本語", "1"], ["ab", "22"]])
    assert len({width(line) for line in lines}) == 1
    assert clipped("日本語日本語", 5) == "日本…"

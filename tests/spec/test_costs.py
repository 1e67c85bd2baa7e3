"""Costs in a file beside a spec: what they mean, and one error for each likely mistake."""

import copy
import json
import pickle

import pytest
from click.testing import CliRunner
from labeldp_verify import check_bytes
from labeldp_verify.analysis import CostMatrix, Costs
from labeldp_verify.graph import write_model

from labeldp_compile.cli import main
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.docs.pages import run_page
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

TABLE = "y,a,b,c\na,0,1,4\nb,2,0,1.5\nc,20,5,0\n"
ROWS = [[0, 2, 8], [4, 0, 3], [40, 10, 0]]


def text(kind="matrix", **changes):
    values = changes.pop("values", ["a", "b", "c"])
    chosen = {"loss": f"{{{kind}: costs}}", "mechanism": "auto", **changes}
    return spec(values=values, **chosen)


def costs_in(folder, content, **changes):
    """The costs that a spec reads from this content of its file."""
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "costs").write_bytes(data)
    return parse_spec(text(**changes), directory=folder).loss.costs


@pytest.mark.parametrize(
    "content",
    [
        TABLE,
        b"\xef\xbb\xbf" + TABLE.encode(),
        TABLE.replace("\n", "\r\n"),
        TABLE.replace("a,0", '"a",0.0') + "\n\n",
        "any thing,c,a,b\nb,1.5,2,0\na,4,0,1e0\nc,0,2E1,5\n",
    ],
)
def test_a_table_may_be_written_in_several_ways(tmp_path, content):
    assert costs_in(tmp_path, content) == Costs(["a", "b", "c"], 2, ROWS)


def test_a_name_may_have_a_comma_a_quote_and_a_line_end(tmp_path):
    names = ["a,b", 'c"d', "e\nf"]
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    lines = zip(quoted.split(',"'), ("0,1,2", "1,0,1", "1,1,0"), strict=True)
    content = f"y,{quoted}\n" + "".join(
        f"{'' if i == 0 else chr(34)}{name},{row}\n" for i, (name, row) in enumerate(lines)
    )
    assert costs_in(tmp_path, content, values=names).rows == [[0, 1, 2], [1, 0, 1], [1, 1, 0]]


WRONG = {
    "y,a,b\na,0,1\nb,1,0\nc,1,1\n": "the label 'c' has no column",
    "y,a,b,c\na,0,1,4\nb,2,0,1.5\n": "the label 'c' has no row",
    TABLE + "a,0,1,4\n": "the label 'a' has two rows",
    TABLE.replace("y,a,b,c", "y,a,b,b"): "the label 'b' has two columns",
    TABLE.replace("y,a", "y,A"): "the column 'A' is not a label",
    TABLE.replace("\nc", "\nd"): "the row 'd' is not a label",
    TABLE.replace("1.5", "-1.5"): "row 'b', column 'c': expected a cost from 0 to 10^12",
    TABLE.replace("1.5", "nan"): "found 'nan'",
    TABLE.replace("1.5", "inf"): "found 'inf'",
    TABLE.replace("1.5", ""): "found ''",
    TABLE.replace("1.5", " 1.5"): "found ' 1.5'",
    TABLE.replace("1.5", "1_5"): "found '1_5'",
    TABLE.replace("1.5", "=1+1"): "found '=1+1'",
    TABLE.replace("1.5", "1e13"): "expected a cost from 0 to 10^12",
    TABLE.replace("1.5", "9" * 2000): "expected a cost from 0 to 10^12",
    TABLE.replace("1.5", "1e-13"): "at most 12 decimals",
    TABLE.replace("1.5", "1.5,2"): "the row 'b' has 4 costs: expected 3",
    TABLE.replace(",1.5", ""): "the row 'b' has 2 costs: expected 3",
    TABLE.replace(",", ";"): "the label 'a' has no column",
    TABLE.replace("\nb", '\n"b'): "unexpected end of data",
    TABLE.replace("\nb", '\n"b"x'): "expected after",
    TABLE.replace("\nb", "\nb\x1b[31m"): "is not a label",
    "y,a,b,c\na,1,2,3\nb,1,2,3\nc,1,2,3\n": "the label makes no difference",
    "": "has no column",
    b"\xff\xfey\x00,\x00": "is not UTF-8 text",
    b"y," + b"a" * 17_000_000: "at most 16,777,216 bytes",
}


@pytest.mark.parametrize(("content", "message"), WRONG.items())
def test_a_wrong_table_is_one_error(tmp_path, content, message):
    with pytest.raises(InputError) as error:
        costs_in(tmp_path, content)
    assert message in str(error.value) and "costs" in str(error.value)
    (tmp_path / "it.yaml").write_text(text())
    done = CliRunner().invoke(
        main, ["compile", str(tmp_path / "it.yaml"), "-o", str(tmp_path / "o")]
    )
    assert done.exit_code == 2 and not (tmp_path / "o").exists()
    assert "\x1b" not in done.output and len(done.output.splitlines()) == 1


def test_a_tree_counts_edges(tmp_path):
    tree = "g: {x: [a, b], y: [[c], d]}\nh: e\ni: [f, z: [j]]\n"
    found = costs_in(tmp_path, tree, kind="tree", values=[*"abcdefj"])
    from_a = dict(zip("abcdefj", found.rows[0], strict=True))
    assert found.unit == 1 and from_a == {"a": 0, "b": 2, "c": 5, "d": 4, "e": 5, "f": 5, "j": 6}
    assert all(found.rows[i][j] == found.rows[j][i] for i in range(7) for j in range(7))


@pytest.mark.parametrize(
    ("content", "message"),
    {
        "g: [a, b]\n": "the label 'c' has no place",
        "g: [a, b]\nh: [c, a]\n": "the label 'a' has two places",
        "g: [a, b, c, d]\n": "the place 'd' is not a label",
        "g: [a, b, c]\nh:\n": "the place '' is not a label",
        "g: [a, b, c]\ng: [a]\n": "line 2: the key 'g' is given twice",
        "g: [a, *b]\n": "aliases",
        "[" * 40 + "a": "nested too deeply",
        "g: [a, b\n": "not valid YAML",
        "": "the file is empty",
    }.items(),
)
def test_a_wrong_tree_is_one_error(tmp_path, content, message):
    with pytest.raises(InputError, match="costs") as error:
        costs_in(tmp_path, content, kind="tree")
    assert message in str(error.value)


REAL = {"kind": "real", "min": 0, "max": 1, "points": 3}
GROUPS = {"groups": {"column": "g", "values": ["u", "v"]}}
DATA = {"kind": "private", "data": "costs"}
BAD_SPECS = {
    "real labels": ({"domain": REAL, "out_of_domain": "clamp"}, "in one column"),
    "another mechanism": (
        {"mechanism": "subset_selection"},
        "no label and has no cost: use least_cost",
    ),
    "another loss": ({"loss": "zero_one", "mechanism": "least_cost"}, "least_cost needs loss"),
    "two losses": ({"loss": "{matrix: costs, tree: costs}"}, "expected one of"),
    "a number": ({"loss": "{matrix: 3}"}, "matrix: expected the name of a file"),
    "no mapping": ({"loss": "matrix"}, "needs a mapping: write loss: {matrix: FILE}"),
    "no file": ({"loss": "{matrix: other.csv}"}, "other.csv: cannot be read"),
    "groups": ({**GROUPS, "prior": {"kind": "public", "data": "x.csv"}}, "for groups use another"),
    "the labels": ({"prior": DATA}, "is the data of the label"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_SPECS.values(), ids=BAD_SPECS)
def test_a_spec_that_does_not_fit_is_one_error(tmp_path, changes, message):
    with pytest.raises(InputError) as error:
        costs_in(tmp_path, TABLE, **changes)
    assert message in str(error.value)


def test_a_column_of_a_joint_label_and_a_spec_without_a_file_have_none():
    label = {"domain": {"kind": "categorical", "values": ["u", "v"]}}
    column = {"column": "a", "out_of_domain": {"default": "u"}, **label}
    columns = [
        {**column, "loss": {"matrix": "costs"}},
        {**column, "column": "b", "loss": "zero_one"},
    ]
    with pytest.raises(SpecError, match="not for a column"):
        parse_spec(spec(columns=columns, loss="sum", mechanism="randomized_response"))
    with pytest.raises(InputError, match="needs a spec that is a file"):
        parse_spec(text())


def test_no_more_than_1_000_labels(tmp_path):
    for k in (210, 1001):
        names = [f"c{i}" for i in range(k)]
        rows = [",".join([name, *("01"[i != j] for j in range(k))]) for i, name in enumerate(names)]
        content = "\n".join([",".join(["", *names]), *rows])
        if k == 210:
            assert len(costs_in(tmp_path, content, values=names).rows) == 210
        else:
            with pytest.raises(InputError, match="2 to 1,000 labels, and there are 1,001"):
                costs_in(tmp_path, content, values=names)


def test_a_spec_agrees_with_its_file_of_costs_alone(tmp_path):
    (tmp_path / "costs").write_text(TABLE)
    made = compile_text(text(), directory=tmp_path).certificate

    def differing(stated=None, directory=tmp_path):
        found = spec_disagreements((stated or text()).encode(), made, None, directory)
        return [line for line in found if "digest" not in line]

    assert differing() == []
    assert any("loss: " in line for line in differing(text(loss="zero_one")))
    assert any("loss: " in line for line in differing(directory=None))
    for content in (TABLE.replace("1.5", "1.6"), "what", TABLE.replace("\nc", "\nd")):
        (tmp_path / "costs").write_text(content)
        assert any("loss: " in line for line in differing())
    (tmp_path / "costs").unlink()
    assert any("loss: " in line for line in differing())


def _set(*path):
    *path, value = path

    def change(certificate):
        inside = certificate
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value

    return change


CHANGES = {
    "a cost": _set("costs", "rows", 0, 1, 3),
    "the unit": _set("costs", "unit", 3),
    "a label": _set("costs", "labels", ["a", "b", "d"]),
    "the order": _set("costs", "labels", ["b", "a", "c"]),
    "another loss": _set("utility", "loss", "zero_one"),
    "no digest": _set("utility", "loss", "matrix"),
    "a boolean": _set("costs", "rows", 0, 0, False),
    "a fraction": _set("costs", "rows", 0, 1, 2.0),
    "below 0": _set("costs", "rows", 0, 1, -2),
    "too many digits": _set("costs", "rows", 0, 1, 10**40),
    "no rows": _set("costs", "rows", []),
    "a row too short": _set("costs", "rows", 0, [0, 2]),
    "rows of text": _set("costs", "rows", ["000", "000", "000"]),
    "labels of lists": _set("costs", "labels", [["a"], ["b"], ["c"]]),
    "labels of two kinds": _set("costs", "labels", ["a", "b", 3]),
    "not in lowest terms": _set(
        "costs", {"labels": [*"abc"], "unit": 4, "rows": [[2 * n for n in row] for row in ROWS]}
    ),
    "another field": _set("costs", "more", 1),
    "no costs": lambda certificate: certificate.pop("costs"),
    "not listed": _set("fields", "declared", []),
}


def altered(folder, change, *more):
    """The report on a file with another certificate."""
    (folder / "costs").write_text(TABLE)
    made = compile_text(text(), directory=folder)
    certificate = made.certificate.to_json()
    assert check_bytes(write_model(made.artifact.label, made.randomizer, certificate)).ok
    certificate = json.loads(json.dumps(certificate))
    for one in (change, *more):
        one(certificate)
    return check_bytes(write_model(made.artifact.label, made.randomizer, certificate))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_altered_costs_fail(tmp_path, change):
    assert not altered(tmp_path, change).ok


@pytest.mark.parametrize("name", ["a cost", "the unit", "a label", "the order"])
def test_altered_costs_fail_even_with_their_own_name(tmp_path, name):
    def rename(certificate):
        certificate["utility"]["loss"] = str(CostMatrix(Costs(**certificate["costs"])))

    assert not altered(tmp_path, CHANGES[name], rename).ok


def test_costs_are_part_of_what_is_signed_and_copied(tmp_path):
    (tmp_path / "costs").write_text(TABLE)
    loss = parse_spec(text(), directory=tmp_path).loss
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other == loss and other.costs == loss.costs


def test_a_plan_and_a_sweep_say_the_loss_as_the_spec_does(tmp_path):
    (tmp_path / "costs").write_text(TABLE)
    prior = {"kind": "public", "weights": [98, 1, 1]}  # of which one output is the cheapest
    (tmp_path / "it.yaml").write_text(text(prior=prior))
    done = CliRunner().invoke(main, ["plan", str(tmp_path / "it.yaml")])
    assert done.exit_code == 2 and "use loss: zero_one and mechanism" in done.output
    (tmp_path / "it.yaml").write_text(text(prior=prior, goal="labels"))
    for command, *more in (("plan",), ("sweep", "--epsilon", "1")):
        done = CliRunner().invoke(main, [command, str(tmp_path / "it.yaml"), *more])
        assert "loss: {matrix: costs}" in done.output


def test_the_example_of_the_page_runs(tmp_path):
    page = run_page(
        "spec.md", tmp_path, lambda block: "costs" in block.text or "biopsy" in block.text
    )
    assert "verified" in page.printed("labeldp", "verify")[0][-1]

"""An artifact with a rule about rows is refused wherever single labels are drawn, or is said to be
used with prepared rows: only ``labeldp randomize`` counts persons."""

import pickle

import pytest
from labeldp_runtime import Key, Randomizer, UnpreparedRowsError

from tests.cli.test_cli import labeldp
from tests.golden.write import HERE

PERSON = HERE / "persons" / "window.onnx"
RULES = {PERSON: "a person has at most 4 rows"}


@pytest.fixture
def key(tmp_path):
    return Key.create(tmp_path / "labels.key")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
def test_python_refuses_it_unless_the_rows_are_prepared(path, key, tmp_path):
    for given in ({}, {"key": key, "context": "y"}):
        with pytest.raises(UnpreparedRowsError, match=RULES[path]):
            Randomizer.load(path, **given)
    drawer = Randomizer.load(path, prepared=True)
    assert pickle.loads(pickle.dumps(drawer)).certificate == drawer.certificate


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
def test_spark_refuses_it_before_it_reads_a_row(path, key):
    spark = pytest.importorskip("labeldp_runtime.engines.spark")
    with pytest.raises(UnpreparedRowsError, match=RULES[path]):
        spark.randomize(None, "y", path, key=key, id_column="id")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "spark"])
def test_sql_refuses_it_and_says_the_rule_in_the_file(path, dialect, tmp_path):
    out = tmp_path / "f.sql"
    words = ("export", "--to", "sql", path, "--dialect", dialect, "-o", out)
    done = labeldp(*words)
    assert done.exit_code == 2 and RULES[path] in done.stderr and not out.exists()
    assert "--prepared" in done.stderr
    assert labeldp(*words, "--prepared").exit_code == 0
    assert f"-- ε holds only if {RULES[path]}" in out.read_text("utf-8")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
def test_a_service_refuses_it_and_lists_the_rule(path):
    pytest.importorskip("uvicorn")
    from labeldp_compile.errors import InputError
    from labeldp_compile.serve.served import load

    done = labeldp("serve", path, "--unkeyed", "--port", 0)
    assert done.exit_code == 2 and RULES[path] in done.stderr and "--prepared" in done.stderr
    with pytest.raises(InputError, match=RULES[path]):
        load([path], None, None, None)
    (served,) = load([path], None, None, None, prepared=True).values()
    (rule,) = served.described()["row_rules"]
    assert rule.startswith(RULES[path])

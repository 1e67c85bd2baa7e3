"""What SQL draws is what the Python reader draws, for every form, in the engines that run here."""

import pytest

from labeldp_compile.errors import InputError
from tests.sql.files import EVERY, FILES, FIVE, IDS, LONG, rows_of
from tests.sql.hosts import HERE as HOSTS


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FILES)
def test_private_labels_are_those_of_the_python_reader(name, host):
    id_type = [*IDS][[*FILES].index(name) % 3]
    rows = rows_of(FILES[name], 400, id_type)
    expected = rows.python()
    assert HOSTS[host](rows) == expected
    assert all(len(set(column)) > 1 for column in expected)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("id_type", IDS)
def test_ids_of_each_type_and_versions_draw_anew(host, id_type):
    rows = rows_of(FILES["window"], 200, id_type)
    first, other = HOSTS[host](rows), HOSTS[host](rows, version=2**64 - 1)
    assert first == rows.python() and other == rows.python(2**64 - 1) and first != other


@pytest.mark.skipif(not LONG, reason="LABELDP_LONG=1 compares every file")
@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_old_file(path):
    rows = rows_of(path, 1000)
    try:
        rows.sql("duckdb")
    except InputError as refusal:
        assert "rounded at random" in str(refusal)
        return
    expected = rows.python()
    for run in HOSTS.values():
        assert run(rows) == expected


@pytest.mark.skipif(not LONG, reason="LABELDP_LONG=1 compares a million ids")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FIVE)
def test_a_million_ids(name, host):
    rows = rows_of(FIVE[name], 1_000_000)
    assert HOSTS[host](rows) == rows.python()

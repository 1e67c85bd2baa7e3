"""What SQL draws is what the Python reader draws, for every form, in the engines that run here."""

import pytest

from labeldp_compile.errors import InputError
from tests.sql.files import FILES, IDS, OTHERS, rows_of, rows_to_compare
from tests.sql.hosts import HERE as HOSTS


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FILES)
def test_private_labels_are_those_of_the_python_reader(name, host):
    id_type = [*IDS][[*FILES].index(name) % 3]
    rows = rows_of(FILES[name], rows_to_compare(name), id_type)
    expected = rows.python()
    assert HOSTS[host](rows) == expected
    assert all(len(set(column)) > 1 for column in expected)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_of_each_other_artifact_all_is_equal_or_all_is_refused(path):
    rows = rows_of(path, 200)
    try:
        rows.sql("duckdb")
    except InputError as refusal:
        reason = str(refusal)
        assert "rounded at random" in reason or "whose nulls stay null" in reason
        return
    expected = rows.python()
    for run in HOSTS.values():
        assert run(rows) == expected


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("id_type", IDS)
def test_ids_of_each_type_and_versions_draw_anew(host, id_type):
    rows = rows_of(FILES["window"], 200, id_type)
    first, other = HOSTS[host](rows), HOSTS[host](rows, version=2**64 - 1)
    assert first == rows.python() and other == rows.python(2**64 - 1) and first != other

"""A spec is somebody else's text: it sends no password to a server that the user did not name."""

import os
import socket
import threading

import pytest

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.client_key import UserConfig
from labeldp_compile.ledger.postgres import configured
from labeldp_compile.ledger_url import Url
from tests.cli.test_cli import labeldp
from tests.ledger.test_ledger_urls import SPEC


@pytest.fixture
def listener():
    """A server that counts who connects; its port and the count."""
    server = socket.create_server(("127.0.0.1", 0))
    connections = []

    def accept():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    yield server.getsockname()[1], connections
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def write(tmp_path, ledger):
    path = tmp_path / "one.yaml"
    path.write_text(SPEC.format(ledger=ledger), encoding="utf-8")
    (tmp_path / "labels.parquet").unlink(missing_ok=True)
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"y": [0, 1, 2, 3] * 9}), tmp_path / "labels.parquet")
    return path


def name(config, *servers):
    config.write_text(f"[ledger]\nservers = {list(servers)!r}\n")


def test_no_connection_is_made_to_a_server_that_only_a_spec_names(
    tmp_path, config, listener, environment
):
    pytest.importorskip("psycopg")
    port, connections = listener
    environment(PGPASSWORD="of-the-user")
    spec = write(tmp_path, f"postgresql://127.0.0.1:{port}/budgets")
    name(config, f"postgresql://127.0.0.1:{port - 1}/budgets", "postgresql://db.example/budgets")
    for command in (
        ("plan", spec),
        ("compile", spec, "-o", tmp_path / "build"),
        ("sweep", spec, "--epsilon", "1", "--spend-prior", "--quiet"),
    ):
        result = labeldp(*command)
        assert result.exit_code == 2, (command, result.output)
        assert "of-the-user" not in result.output
        assert "names a server that is not in your configuration" in result.stderr
        assert str(config) in result.stderr and result.stderr.count("\n") == 1
    assert not connections
    # Named, it is connected to.
    name(config, f"postgresql://127.0.0.1:{port}/budgets")
    assert "cannot be reached" in labeldp("plan", spec).stderr and connections


SERVER = "postgresql://me@db.example:5432/budgets?sslmode=verify-full&passfile=/home/me/pass"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("postgresql://db.example:5432/budgets", True),
        ("postgresql://me@db.example:5432/budgets?schema=team_a", True),
        ("postgres://me@db.example:5432/budgets?sslmode=verify-full&schema=team_a", True),
        ("postgresql://you@db.example:5432/budgets", False),
        ("postgresql://db.example/budgets", False),
        ("postgresql://db.example:5432,evil.example:5432/budgets", False),
        ("postgresql://evil.example:5432/budgets", False),
        ("postgresql://db.example:5432/budgets?host=evil.example", False),
        ("postgresql://db.example:5432/budgets?service=evil", False),
        ("postgresql://db.example:5432/budgets?sslmode=disable", False),
        ("postgresql://db.example:5432/budgets?passfile=/home/me/.netrc", False),
        ("postgresql://db.example:5432/budgets?options=-csearch_path%3Devil", False),
        ("postgresql://db.example:5432/budgets?sslmode=verify-full&sslmode=disable", False),
    ],
)
def test_what_a_spec_may_choose(spec, found, tmp_path):
    config = UserConfig(tmp_path, ("postgresql://first.example/b", SERVER), tmp_path / "key")
    if not found:
        with pytest.raises(InputError, match="names a server that is not in your configuration"):
            configured(Url.parse(spec), config)
        return
    url = configured(Url.parse(spec), config)
    assert url.conninfo == SERVER  # all of it is the user's, and nothing the spec's
    assert url.schema == Url.parse(spec).schema
    assert Url.parse(url.name).schema == url.schema


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql://me:secret@host/b",
        "postgresql://me:@host/b",
        "postgresql://host/b?password=secret",
        "postgresql://host/b?sslpassword=secret",
        "postgresql://host/b?scram_client_key=secret",
        "postgresql://host/b?oauth_client_secret=secret",
    ],
)
def test_credentials_are_refused_in_specs_and_in_the_configuration(tmp_path, config, secret):
    result = labeldp("plan", write(tmp_path, secret))
    assert result.exit_code == 2 and "PGPASSWORD" in result.stderr
    assert "secret" not in result.output
    name(config, secret)
    result = labeldp("plan", write(tmp_path, "postgresql://host/b"))
    assert result.exit_code == 2 and "PGPASSWORD" in result.stderr
    assert "secret" not in result.output


@pytest.mark.skipif(os.geteuid() != 0, reason="a file is given away by root alone")
def test_a_ledger_that_belongs_to_somebody_else(bench):
    bench.open_budget("1")
    os.chown(bench.ledger, 65534, 65534)
    result = bench.compile()
    assert result.exit_code == 2 and "belongs to another user" in result.stderr, result.output
    os.chown(bench.ledger, 0, 0)
    assert bench.compile().exit_code == 0

"""A spec is somebody else's text: it sends no password to a server that the user did not name."""

import os
import socket
import threading

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.postgres.store import configured
from labeldp_compile.ledger_url import Url
from labeldp_compile.user_config import UserConfig, user_config
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


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


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
    name(config, f"postgresql://127.0.0.1:{port + 1}/budgets", "postgresql://db.example/budgets")
    for command in (
        ("plan", spec),
        ("compile", spec, "-o", tmp_path / "build"),
        ("sweep", spec, "--epsilon", "1", "--spend-prior", "--quiet"),
    ):
        result = run(*command)
        assert result.exit_code == 2, (command, result.output)
        assert "of-the-user" not in result.output
        assert "names a server that is not in your configuration" in result.stderr
        assert str(config) in result.stderr and result.stderr.count("\n") == 1
    assert not connections
    # Named, it is connected to.
    name(config, f"postgresql://127.0.0.1:{port}/budgets")
    assert "cannot be reached" in run("plan", spec).stderr and connections


SERVER = "postgresql://me@db.example:5432/budgets?sslmode=verify-full&passfile=/home/me/pass"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("postgresql://db.example:5432/budgets", True),
        ("postgresql://me@db.example:5432/budgets?schema=team_a", True),
        ("postgres://me@db.example:5432/budgets?sslmode=verify-full&schema=team_a", True),
        ("postgresql://you@db.example:5432/budgets", False),
        ("postgresql://db.example/budgets", False),
        ("postgresql://db.example:5432/others", False),
        ("postgresql://db.example:5432", False),
        ("postgresql:///budgets", False),
        ("postgresql://db.example:5432,evil.example:5432/budgets", False),
        ("postgresql://evil.example:5432/budgets", False),
        ("postgresql://db.example:5432/budgets?host=evil.example", False),
        ("postgresql://db.example:5432/budgets?hostaddr=10.0.0.1", False),
        ("postgresql://db.example:5432/budgets?port=1", False),
        ("postgresql://db.example:5432/budgets?dbname=others", False),
        ("postgresql://db.example:5432/budgets?service=evil", False),
        ("postgresql://db.example:5432/budgets?sslmode=disable", False),
        ("postgresql://db.example:5432/budgets?passfile=/home/me/.netrc", False),
        ("postgresql://db.example:5432/budgets?sslkey=/home/me/key", False),
        ("postgresql://db.example:5432/budgets?options=-csearch_path%3Devil", False),
        ("postgresql://db.example:5432/budgets?krbsrvname=evil", False),
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
    result = run("plan", write(tmp_path, secret))
    assert result.exit_code == 2 and "PGPASSWORD" in result.stderr
    assert "secret" not in result.output
    name(config, secret)
    result = run("plan", write(tmp_path, "postgresql://host/b"))
    assert result.exit_code == 2 and "PGPASSWORD" in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ledger", "is not valid TOML"),
        ("[other]", "expected one table"),
        ("ledger = 3", "expected one table"),
        ("[ledger]\nserver = []", "servers and key"),
        ("[ledger]\nservers = 'postgresql://a/b'", "expected a list of URLs"),
        ("[ledger]\nservers = [3]", "expected a list of URLs"),
        ("[ledger]\nkey = ''", "expected the name of a file"),
        ('[ledger]\nkey = "a\\u0000"', "expected the name of a file"),
        ("[ledger]\nservers = ['postgresql://host/b?schema=a']", "leave it out"),
        ("[ledger]\nservers = ['mysql://host/b']", "is not the URL of a ledger"),
        ("\udcff", "is not valid TOML"),
    ],
)
def test_a_configuration_that_is_damaged(tmp_path, config, text, message):
    config.write_text(text, errors="surrogateescape")
    result = run("plan", write(tmp_path, "postgresql://host/b"))
    assert result.exit_code == 2 and message in result.stderr, result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="a file is given away by root alone")
def test_files_that_belong_to_somebody_else(tmp_path, config, bench):
    bench.open_budget("1")
    for path, message in (
        (bench.ledger, "belongs to another user"),
        (config.parent / "ledger.key", "others may read this key"),
    ):
        os.chown(path, 65534, 65534)
        result = bench.compile()
        assert result.exit_code == 2 and message in result.stderr, result.output
        os.chown(path, 0, 0)
    assert bench.compile().exit_code == 0


def test_where_the_configuration_is(tmp_path, environment):
    environment(LABELDP_CONFIG=tmp_path / "missing.toml")
    with pytest.raises(InputError, match="is named by LABELDP_CONFIG but does not exist"):
        user_config()
    environment(LABELDP_CONFIG=None)
    environment(XDG_CONFIG_HOME=tmp_path / "xdg")
    assert user_config().ledger_key == tmp_path / "xdg/labeldp/ledger.key"
    assert user_config().servers == ()
    environment(XDG_CONFIG_HOME="relative")
    environment(HOME=tmp_path)
    assert user_config().path == tmp_path / ".config/labeldp/config.toml"
    folder = tmp_path / ".config/labeldp"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[ledger]\nkey = "keys/one"\n')
    assert user_config().ledger_key == folder / "keys/one"


def test_a_key_is_made_in_a_folder_that_is_not_there_yet(tmp_path, environment):
    environment(LABELDP_CONFIG=None)
    environment(XDG_CONFIG_HOME=tmp_path / "xdg")
    assert run("ledger", "init", tmp_path / "a.ledger").exit_code == 0
    assert (tmp_path / "xdg/labeldp").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "xdg/labeldp/ledger.key").stat().st_mode & 0o777 == 0o600

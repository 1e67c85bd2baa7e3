"""``labeldp serve``: private labels over HTTP, without a label in any log, count or error."""

import json
import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from click.testing import CliRunner
from labeldp_runtime import Key, Randomizer
from starlette.testclient import TestClient

from labeldp_compile.cli import main
from labeldp_compile.serve import app
from labeldp_compile.serve.app import Service
from labeldp_compile.serve.command import Settings
from labeldp_compile.serve.served import load
from tests.golden.write import HERE
from verifier.tests.files import rebuilt

PLAIN, JOINT, GROUPS = HERE / "plain/optimal-unbiased.onnx", HERE / "joint/top.onnx", "columns"
GROUPED, SETS = HERE / "groups/columns.onnx", HERE / "sets/design.onnx"
FILES = [PLAIN, JOINT, GROUPED, SETS]
SETTINGS = Settings(None, 1 << 20, 1000, None)
TYPED = {"content-type": "application/json"}
STREAM = {"content-type": "application/vnd.apache.arrow.stream"}


def stated(path):
    return Randomizer.load(path).certificate["name"]


NAME = stated(PLAIN)


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "labels.key"
    Key.create(path)
    return path


@pytest.fixture(scope="module")
def keyed(key):
    service = Service(lambda: load(FILES, key, None, None), SETTINGS)
    return TestClient(service.application(), headers=TYPED)


@pytest.fixture(scope="module")
def unkeyed():
    return TestClient(Service(lambda: load(FILES, None, None, None), SETTINGS).application())


def url(name=NAME):
    return f"/v1/artifacts/{name}/randomize"


def column(path=PLAIN):
    (name,) = Randomizer.load(path).label_columns
    return name


def stream(**columns):
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read(answer):
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def test_json_and_arrow_give_what_the_runtime_gives(keyed, key):
    labels, ids = [0, 3, 5, None, 99], [f"row {i}" for i in range(5)]
    direct = Randomizer.load(PLAIN, key=key, context=column())(labels, ids=ids, version=2)
    body = {"columns": {column(): labels}, "ids": ids, "version": 2}
    answer = keyed.post(url(), json=body)
    assert answer.status_code == 200
    assert answer.json() == {"columns": {column(): direct.tolist()}}
    body = stream(**{column(): labels, "id": ids})
    table = read(keyed.post(url() + "?id=id&version=2", content=body, headers=STREAM))
    assert table.to_pydict() == {"id": ids, column(): direct.tolist()}


def test_labels_of_several_columns_groups_and_sets(keyed, key):
    for path in (JOINT, GROUPED, SETS):
        drawer = Randomizer.load(path)
        names = [*drawer.label_columns, *drawer.group_columns]
        columns = {name: [None, None, None] for name in names}
        answer = keyed.post(url(stated(path)), json={"columns": columns, "ids": [1, 2, 3]})
        assert answer.status_code == 200, answer.text
        found = answer.json()["columns"]
        assert list(found) == drawer.label_columns
        assert all(len(values) == 3 for values in found.values())
        again = stream(**columns, id=[1, 2, 3])
        table = read(keyed.post(url(stated(path)) + "?id=id", content=again, headers=STREAM))
        assert {name: table[name].to_pylist() for name in found} == found


HOSTILE = [
    *("null", "NaN", "-Infinity", "1e999", "true", '"5"', '"\\ud800"', "[5]", '{"a": 5}', "5.5"),
    *("9" * 5000, "-" + "9" * 30, "123456789012345678901234567890", "1e-400", '""', '"\\u0000"'),
]


@pytest.mark.parametrize("path", [PLAIN, JOINT], ids=["one column", "two columns"])
def test_no_label_changes_how_another_is_read(keyed, path):
    names = Randomizer.load(path).label_columns
    answers = []
    for label in ["0", *HOSTILE]:
        columns = ", ".join(f'"{name}": [0, {label}, 3]' for name in names)
        body = f'{{"columns": {{{columns}}}, "ids": [1, 2, 3]}}'
        answers.append(keyed.post(url(stated(path)), content=body))
    assert {answer.status_code for answer in answers} == {200}
    rows = [list(zip(*answer.json()["columns"].values(), strict=True)) for answer in answers]
    assert len({(row[0], row[2]) for row in rows}) == 1


def test_text_that_is_not_utf8_is_no_error(keyed):
    name = column(SETS)
    labels = pa.array([b"ok", b"\xff\xfe", b"ok"], pa.binary()).view(pa.string())
    body = stream(**{name: labels, "id": [1, 2, 3]})
    assert len(read(keyed.post(url(stated(SETS)) + "?id=id", content=body, headers=STREAM))) == 3

    answers = []
    for label in (b"\xff\xfe", b"a\tb\x00", b"\xed\xa0\x80", b"other"):
        body = b'{"columns": {"%s": ["%s", "x"]}, "ids": [1, 2]}' % (name.encode(), label)
        answers.append(keyed.post(url(stated(SETS)), content=body))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["columns"][name][1] for answer in answers}) == 1
    body = json.dumps({"columns": {name: ["\ud800", "x"]}, "ids": [1, 2]}, ensure_ascii=False)
    wide = body.encode("utf-16", "surrogatepass")
    assert keyed.post(url(stated(SETS)), content=wide).status_code == 200
    body = b'{"columns": {"%s": ["x"]}, "ids": ["\xff"]}' % name.encode()
    assert "surrogate" in keyed.post(url(stated(SETS)), content=body).json()["error"]


def compressed():
    table = pa.table({column(): [0] * 900, "id": list(range(900))})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


WRONG_STREAMS = {
    "no stream": (b"junk" * 9, "not an Arrow stream"),
    "cut short": (stream(**{column(): [1, 2], "id": [1, 2]})[:-200], "not an Arrow stream"),
    "compressed": (compressed(), "compressed"),
    "dictionary": (
        stream(**{column(): pa.array(["a"]).dictionary_encode(), "id": [1]}),
        "record batches",
    ),
    "a billion nulls": (stream(**{column(): pa.nulls(10**9), "id": pa.nulls(10**9)}), "1,000 rows"),
    "no id": (stream(**{column(): [1]}), "id column"),
    "another column": (stream(**{column(): [1], "id": [1], "x": [1]}), "columns must be exactly"),
}


def twice():
    table = pa.table([[1], [2], ["a"]], names=[column(), column(), "id"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


WRONG_STREAMS["a column twice"] = (twice(), "same name")


@pytest.mark.parametrize("case", WRONG_STREAMS)
def test_wrong_streams_have_one_error(keyed, case):
    body, reason = WRONG_STREAMS[case]
    answer = keyed.post(url() + "?id=id", content=body, headers=STREAM)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert any(part in error for part in reason.split("|")), error


WRONG = {
    "not JSON": (b"{", "not JSON"),
    "too deep": (b"[" * 100_000, "not JSON"),
    "a list": (b"[]", "not an object"),
    "ids twice": (b'{"columns": {}, "ids": [1], "ids": [2]}', "not an object"),
    "a column twice": (b'{"columns": {"x": [1], "x": [2]}, "ids": [1]}', "not an object of arrays"),
    "other column": ({"columns": {"x": [1]}, "ids": [1]}, "must be exactly"),
    "lengths": ({"columns": {column(): [1, 2]}, "ids": [1]}, "different lengths"),
    "no ids": ({"columns": {column(): [1, 2]}}, "ids"),
    "no version": ({"columns": {column(): [1]}, "ids": [1], "version": True}, "version"),
    "rows": ({"columns": {column(): [1] * 1001}, "ids": list(range(1001))}, "1,000 rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_have_one_error(keyed, case):
    given, reason = WRONG[case]
    body = given if isinstance(given, bytes) else json.dumps(given)
    answer = keyed.post(url(), content=body)
    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["error"]


def test_a_request_of_two_lengths_is_refused(keyed):
    content = json.dumps({"columns": {column(): [1]}, "ids": [1]}).encode()
    lengths = {"content-length": str(len(content)), "transfer-encoding": "chunked"}
    for path in (url(), "/health", "/nowhere"):
        answer = keyed.post(path, content=content, headers=lengths)
        assert answer.status_code == 400
        assert answer.headers["connection"] == "close"
    for one in lengths.items():
        answer = keyed.post(url(), content=content, headers=dict([one]))
        assert answer.status_code == 200


def test_labels_are_never_sent_elsewhere(keyed):
    body = {"columns": {column(): [1]}, "ids": [1]}
    for path in (url() + "/", "/v1/artifacts/"):
        answer = keyed.post(
            path, json=body, headers={"host": "evil.example"}, follow_redirects=False
        )
        assert answer.status_code == 404
        assert "location" not in answer.headers


def test_without_a_key_every_request_draws_anew(unkeyed):
    body = {"columns": {column(): [3] * 500}}
    one, other = (unkeyed.post(url(), json=body).json()["columns"][column()] for _ in range(2))
    assert one != other
    for more in ({"ids": list(range(500))}, {"version": 1}):
        answer = unkeyed.post(url(), json={**body, **more})
        assert answer.status_code == 400
        assert "no key" in answer.json()["error"]


def test_limits_and_who_may_call(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now, perf_counter=time.perf_counter, now=0.0)
    monkeypatch.setattr(app, "time", clock)
    settings = Settings(b"a-secret-of-callers", 200, 10, 3)
    client = TestClient(Service(lambda: load([PLAIN], None, None, None), settings).application())
    good = {"authorization": "Bearer a-secret-of-callers"}
    body = {"columns": {column(): [3]}}
    for wrong in (
        {},
        {"authorization": "Bearer no"},
        {"authorization": "Basic a-secret-of-callers"},
    ):
        for path in ("/", "/metrics", "/openapi.json", "/v1/artifacts"):
            assert client.get(path, headers=wrong).status_code == 401
        assert client.post(url(), json=body, headers=wrong).status_code == 401
    assert client.get("/health").status_code == 200
    assert client.get("/v1/artifacts", headers=good).status_code == 200
    assert client.get(url(), headers=good).status_code == 405
    assert client.post(url("other"), json=body, headers=good).status_code == 404
    answer = client.post(url(), json={"columns": {column(): [3] * 200}}, headers=good)
    assert answer.status_code == 413
    answer = client.post(url(), content=b"3", headers={**good, "content-type": "text/csv"})
    assert answer.status_code == 415
    for clock.now in (1.0, 2.0):
        found = [client.post(url(), json=body, headers=good).status_code for _ in range(5)]
        assert found == [200, 200, 200, 429, 429]


def test_logs_and_counts_hold_no_label_and_no_id(key, capfd):
    service = Service(lambda: load([SETS], key, None, None), SETTINGS)
    client = TestClient(service.application())
    labels, ids = ["secret-of-a-person"] * 7, [f"person-{i}" for i in range(7)]
    body = {"columns": {column(SETS): labels}, "ids": ids}
    assert client.post(url(stated(SETS)), json=body).status_code == 200
    assert client.post(url(stated(SETS)), json={**body, "ids": ids[:3]}).status_code == 400
    assert client.post(url("person-5"), json=body).status_code == 404
    counted, logged = client.get("/metrics").text, capfd.readouterr().err
    for text in (counted, logged):
        assert "secret-of" not in text
        assert "person" not in text
    assert f'labeldp_rows_total{{artifact="{stated(SETS)}"}} 7.0' in counted
    lines = list(map(json.loads, logged.splitlines()))
    assert [(line["status"], line["rows"]) for line in lines] == [(200, 7), (400, 0), (404, 0)]


def test_an_unforeseen_error_discloses_nothing(monkeypatch, capfd):
    def failing(*_):
        raise RuntimeError("the label is secret-7")

    service = Service(lambda: load([PLAIN], None, None, None), SETTINGS)
    monkeypatch.setattr(service, "_private", failing)
    answer = TestClient(service.application()).post(url(), json={"columns": {column(): [7]}})
    assert answer.status_code == 500
    assert answer.json() == {"error": "the service failed"}
    logged = capfd.readouterr().err
    assert "RuntimeError" in logged
    assert "secret" not in logged


def test_a_body_without_a_type_is_refused(unkeyed):
    """A page of another site can send one, and reads no label from the answer, but spends ε."""
    body = json.dumps({"columns": {column(): [3]}}).encode()
    for headers, status in (({}, 415), ({"content-type": "text/plain"}, 415), (TYPED, 200)):
        assert unkeyed.post(url(), content=body, headers=headers).status_code == status


def test_names_are_escaped_on_the_page(tmp_path):
    evil = "<script>alert(1)</script>\x1b[2J"
    path = tmp_path / "x.onnx"
    path.write_bytes(rebuilt(PLAIN.read_bytes(), lambda stated: stated.update(name=evil)))
    client = TestClient(Service(lambda: load([path], None, None, None), SETTINGS).application())
    page = client.get("/").text
    assert "<script>" not in page
    assert "%3Cscript%3E" in page


def test_files_are_read_anew_and_bad_ones_are_not_taken(tmp_path, capfd):
    path = tmp_path / "x.onnx"
    shutil.copy(PLAIN, path)
    service = Service(lambda: load([path], None, None, None), SETTINGS)
    first = service.artifacts[NAME].artifact.sha256
    shutil.copy(HERE / "portable/optimal-unbiased.onnx", path)
    service.reload()
    second = service.artifacts[NAME].artifact.sha256
    assert second != first
    path.write_bytes(rebuilt(PLAIN.read_bytes(), lambda stated: stated.update(outputs=3)))
    service.reload()
    assert service.artifacts[NAME].artifact.sha256 == second
    assert "reload failed" in capfd.readouterr().err
    assert b'labeldp_reloads_total{result="failed"} 1.0' in service.metrics.text()


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("evil.example:localhost", False),
        ("", False),
    ],
)
def test_without_a_token_a_page_that_leads_its_name_here_is_not_answered(keyed, key, host, is_own):
    settings = replace(SETTINGS, own_host=True)
    service = TestClient(Service(lambda: load(FILES, key, None, None), settings).application())
    body = {"columns": {column(): [3]}, "ids": [1]}
    for answer in (
        service.post(url(), json=body, headers={"host": host}),
        service.get("/v1/artifacts", headers={"host": host}),
        service.get("/metrics", headers={"host": host}),
    ):
        assert answer.status_code == (200 if is_own else 421)
    assert keyed.post(url(), json=body, headers={"host": host}).status_code == 200


def test_what_cannot_be_served(tmp_path, key):
    forged = tmp_path / "x.onnx"
    forged.write_bytes(rebuilt(PLAIN.read_bytes(), lambda stated: stated.update(outputs=3)))
    open_token, short = tmp_path / "open", tmp_path / "short"
    open_token.write_text("a" * 20)
    short.write_text("abc")
    short.chmod(0o600)
    cases = [
        (1, [forged, "--unkeyed"]),
        (2, [PLAIN]),
        (2, [PLAIN, PLAIN, "--unkeyed"]),
        (2, [PLAIN, "--unkeyed", "--host", "0.0.0.0"]),
        (2, [PLAIN, "--unkeyed", "--token-file", open_token]),
        (2, [PLAIN, "--unkeyed", "--token-file", short]),
        (2, [PLAIN, "--unkeyed", "--tls-cert", short, "--tls-key", short]),
    ]
    for code, arguments in cases:
        done = CliRunner().invoke(main, ["serve", *map(str, arguments)])
        assert done.exit_code == code, (arguments, done.output)
        assert done.stderr.count("\n") <= 3, done.stderr

"""``labeldp serve`` as a process: signals, and certificates of both sides."""

import datetime
import ipaddress
import os
import shutil
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from labeldp_runtime import Key

from runtime.tests.engines.cluster import wait_for
from tests.serve.test_service import PLAIN, column, url

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
HOST = "127.0.0.1"
BODY = {"columns": {column(): [3]}, "ids": [1]}


@contextmanager
def running(*arguments):
    """The process and its address."""
    command = [sys.executable, "-m", "labeldp_compile.cli", "serve", *map(str, arguments)]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            assert " at " in line, line + process.stderr.read()
            yield process, line.split(" at ")[1].partition(": ")[0]
        finally:
            process.terminate()
            process.communicate(timeout=60)


def client(address, **options):
    transport = httpx2.HTTPTransport(retries=20, **options)
    return httpx2.Client(base_url=address, transport=transport)


def served(caller):
    """The digest of the file that is served."""
    return caller.get("/v1/artifacts").json()["artifacts"][0]["sha256"]


def test_it_reads_files_anew_and_stops(tmp_path):
    path = tmp_path / "x.onnx"
    shutil.copy(PLAIN, path)
    Key.create(tmp_path / "labels.key")
    keyed = ["--key", tmp_path / "labels.key"]
    with running(path, *keyed) as (process, address), client(address) as caller:
        first = caller.post(url(), json=BODY)
        assert first.status_code == 200
        with running(path, *keyed) as (_, elsewhere), client(elsewhere) as other:
            assert other.post(url(), json=BODY).json() == first.json()  # of a process with its key
        digest = served(caller)
        shutil.copy(PLAIN.parents[1] / "portable/optimal-unbiased.onnx", path)
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: served(caller) != digest, "the new file")
        assert caller.post(url(), json=BODY).json() == first.json()
        elsewhere = caller.post(url(), json=BODY, headers={"host": "evil.example"})
        assert elsewhere.status_code == 421 and "name" in elsewhere.json()["error"]
    assert process.returncode == 0


def certificate(folder, name, issuer=None):
    """A key and a certificate for this machine, by an issuer or by itself: (certificate, key)."""
    key = generate_private_key(SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]),
            critical=False,
        )
    )
    made = builder.sign(key if issuer is None else issuer[1], SHA256())
    (folder / f"{name}.pem").write_bytes(made.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / f"{name}.key").write_bytes(secret)
    return made, key


def trusting(folder, name=None):
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # which Python 3.13 sets: no key identifiers
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def test_only_clients_with_a_certificate_are_answered(tmp_path):
    authority = certificate(tmp_path, "authority")
    for name in ("service", "caller"):
        certificate(tmp_path, name, authority)
    certificate(tmp_path, "stranger")
    given = ["--tls-cert", tmp_path / "service.pem", "--tls-key", tmp_path / "service.key"]
    given += ["--client-ca", tmp_path / "authority.pem", "--host", HOST, "--unkeyed"]
    body = {"columns": BODY["columns"]}
    with running(PLAIN, *given) as (_, address):
        assert address.startswith("https://")
        with client(address, verify=trusting(tmp_path, "caller")) as caller:
            assert caller.post(url(), json=body).status_code == 200
        for name in (None, "stranger"):
            with client(address, verify=trusting(tmp_path, name)) as caller:  # noqa: SIM117
                with pytest.raises(httpx2.TransportError):
                    caller.post(url(), json=body)


def test_what_travels_in_clear_text_is_warned_of(tmp_path):
    token = tmp_path / "token"
    token.write_text("a" * 20)
    token.chmod(0o600)
    given = [PLAIN, "--unkeyed", "--host", "0.0.0.0", "--token-file", token]
    with running(*given) as (process, _):
        assert "travel unencrypted" in process.stderr.readline()

"""Keys and their files: secret from the first moment, never overwritten, damage is noticed."""

import hashlib
import os
import pickle
import stat

import pytest
from labeldp_runtime import Key, KeyFileError, Randomizer

from runtime.tests.helpers import path_of


def test_a_new_file_is_private_and_loads(tmp_path):
    before = os.umask(0)
    try:
        key = Key.create(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    assert Key.load(tmp_path / "a.key") == key
    assert Key.load(str(tmp_path / "a.key")).secret == key.secret
    assert Key.create(tmp_path / "b.key") != key
    assert len(key.secret) == 32


def test_the_format_of_the_file(tmp_path):
    key = Key.create(tmp_path / "a.key")
    text = (tmp_path / "a.key").read_text()
    secret, name = key.secret.hex(), key.fingerprint
    assert text == f"labeldp-key: 1\nkey: {secret}\nfingerprint: {name}\n"
    assert Key(bytes(range(32))).fingerprint == "501ef6cb10976447"


def test_nothing_is_overwritten(tmp_path):
    path, link = tmp_path / "a.key", tmp_path / "link.key"
    path.write_text("kept")
    link.symlink_to(tmp_path / "nowhere.key")
    for place in (path, link, tmp_path):
        with pytest.raises(KeyFileError, match="exists already"):
            Key.create(place)
    assert path.read_text() == "kept" and not (tmp_path / "nowhere.key").exists()
    with pytest.raises(KeyFileError, match="cannot be written"):
        Key.create(tmp_path / "no" / "a.key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610, 0o602])
def test_files_open_to_others_are_refused(tmp_path, mode):
    Key.create(tmp_path / "a.key")
    (tmp_path / "a.key").chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        Key.load(tmp_path / "a.key")
    (tmp_path / "a.key").chmod(0o400)
    Key.load(tmp_path / "a.key")


def written(path, text):
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def test_damaged_files_are_refused_and_quote_nothing(tmp_path):
    key = Key.create(tmp_path / "a.key")
    text = (tmp_path / "a.key").read_text()
    secret = key.secret.hex()
    flipped = ("0" if secret[0] != "0" else "1") + secret[1:]
    cases = {
        "": "is not a key file",
        "password": "is not a key file",
        text[:-5]: "is not a key file",
        text + "more": "is not a key file",
        text.replace(secret, secret[:-1]): "is not a key file",
        text.replace(secret, flipped): "fingerprint differ",
        text.replace("key: 1", "key: 2"): "upgrade",
    }
    for i, (content, message) in enumerate(cases.items()):
        with pytest.raises(KeyFileError, match=message) as caught:
            Key.load(written(tmp_path / f"{i}.key", content))
        assert secret[4:40] not in str(caught.value)
    for path in (tmp_path / "missing.key", tmp_path):
        with pytest.raises(KeyFileError, match="cannot be read"):
            Key.load(path)
    assert Key.load(written(tmp_path / "crlf.key", text.replace("\n", "\r\n"))) == key


def test_keys_of_the_wrong_length_are_refused():
    for secret in (b"", b"password", bytes(31), bytes(33)):
        with pytest.raises(KeyFileError, match="32 random bytes"):
            Key(secret)


def test_a_key_prints_and_pickles_without_its_secret(tmp_path):
    key = Key.create(tmp_path / "a.key")
    assert key.fingerprint in repr(key) and key.secret.hex() not in repr(key)
    data = pickle.dumps(key)
    assert key.secret not in data and key.secret.hex().encode() not in data
    assert pickle.loads(data) == key
    (tmp_path / "a.key").unlink()
    Key.create(tmp_path / "a.key")
    with pytest.raises(KeyFileError, match="another key"):
        pickle.loads(data)
    with pytest.raises(TypeError, match="not loaded from a file"):
        pickle.dumps(Key(bytes(32)))
    assert len({key, Key(key.secret), Key(bytes(32))}) == 2


def test_what_a_randomizer_says_of_itself(tmp_path):
    path = path_of("integers")
    key = Key.create(tmp_path / "labels.key")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    fresh, keyed = Randomizer.load(path), Randomizer.load(path, key=key, context="y")
    stated = fresh.certificate
    assert repr(fresh) == (
        f"<Randomizer 'example': ε = {stated['privacy']['epsilon_label']} per label, "
        f"{stated['labels']} labels, {stated['outputs']} outputs, sha256 {digest[:12]}…, no key>"
    )
    assert repr(keyed) == repr(fresh).replace("no key", "keyed")
    assert key.fingerprint not in repr(keyed) and key.secret.hex()[:8] not in repr(keyed)
    for name, privacy in (("\x1b[2J\n", {}), (["x"] * 10**5, []), (None, None)):
        fresh._stated = {"name": name, "privacy": privacy}
        assert repr(fresh).isprintable() and len(repr(fresh)) < 3000

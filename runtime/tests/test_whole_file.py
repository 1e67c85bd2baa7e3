"""Files that appear whole or not at all: nobody else reads them before, no two writers meet."""

import os
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest
from labeldp_runtime.whole_file import (
    UnfinishedError,
    folder_when_whole,
    name_held,
    partial_of,
    replaced_when_whole,
)

NOBODY = 65_534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def umask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def left_by_a_kill(path, content=b"labels", kind="file"):
    """A writer that ends in the middle without a chance to tidy up."""
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from labeldp_runtime.whole_file import folder_when_whole, name_held, replaced_when_whole\n"
        "path, content = Path(sys.argv[1]), sys.argv[2].encode()\n"
        "if sys.argv[3] == 'file':\n"
        "    with replaced_when_whole(path) as file:\n"
        "        file.write(content); file.flush(); os.kill(os.getpid(), 9)\n"
        "if sys.argv[3] == 'held':\n"
        "    with name_held(path):\n"
        "        os.kill(os.getpid(), 9)\n"
        "with folder_when_whole(path) as folder:\n"
        "    (folder / 'kept').write_bytes(content); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, path, content, kind], check=False)
    assert killed.returncode == -9
    return partial_of(path)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_modes_before_and_after(tmp_path, mask):
    path, secret, folder = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    with umask(mask):
        with replaced_when_whole(path) as file:
            assert mode(partial_of(path)) == 0o600 and not partial_of(path).stat().st_size
            file.write(b"x")
        with replaced_when_whole(secret, most=0o600):
            pass
        with folder_when_whole(folder) as part:
            assert part == partial_of(folder) and mode(part) == 0o700
        assert mode(path) == 0o666 & ~mask and mode(folder) == 0o777 & ~mask
        assert mode(secret) == 0o600
        path.chmod(0o640)
        with replaced_when_whole(path):
            pass
        assert mode(path) == 0o640  # of the file that was replaced
        with replaced_when_whole(path, most=0o604):
            pass
        assert mode(path) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]


@AS_ROOT
def test_the_mode_of_somebody_elses_file_gives_others_no_more_rights(tmp_path):
    """They may have put it there to read, or change, what replaces it."""
    path, link = tmp_path / "a", tmp_path / "link"
    for put, before, after in ((path, 0o666, 0o640), (path, 0o600, 0o600), (link, 0o666, 0o640)):
        path.touch()
        os.chown(path, NOBODY, NOBODY)
        path.chmod(before)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        with umask(0o027), replaced_when_whole(put) as file:
            file.write(b"x")
        assert mode(put) == after and put.stat().st_uid == 0


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_kill_leaves_is_named_and_removed(tmp_path, kind):
    path, found = tmp_path / "out", []
    partial = left_by_a_kill(path, kind=kind)
    assert mode(partial) == (0o600 if kind == "file" else 0o700) and not path.exists()
    with replaced_when_whole(path, found=found.append) as file:
        file.write(b"new")
    assert found == [partial] and path.read_bytes() == b"new" and not partial.exists()


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "out"
    with replaced_when_whole(path) as first:
        first.write(b"first")
        with pytest.raises(UnfinishedError, match="another run"), replaced_when_whole(path):
            pytest.fail("the second writer began")
        with pytest.raises(UnfinishedError, match="another run"), folder_when_whole(path):
            pytest.fail("the second writer began")
    assert path.read_bytes() == b"first"
    with folder_when_whole(tmp_path / "f") as part:
        (part / "kept").touch()
        with pytest.raises(UnfinishedError), folder_when_whole(tmp_path / "f"):
            pytest.fail("the second writer began")
    assert (tmp_path / "f" / "kept").exists()


def test_a_name_that_is_held(tmp_path, capsys):
    path = tmp_path / "out"
    with name_held(path):
        assert mode(partial_of(path)) == 0o600
        for other in (name_held, replaced_when_whole, folder_when_whole):
            with pytest.raises(UnfinishedError, match="another run"), other(path):
                pytest.fail("the second began")
    with pytest.raises(ZeroDivisionError), name_held(path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    partial = left_by_a_kill(path, b"", kind="held")
    assert partial.exists()
    with name_held(path):
        assert partial.exists()
    assert list(tmp_path.iterdir()) == [] and capsys.readouterr().err == ""
    partial.symlink_to(tmp_path / "victim")
    with pytest.raises(UnfinishedError, match="in the way"), name_held(path):
        pytest.fail("a link is no lock")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_what_was_planted_is_not_followed(tmp_path, kind):
    victim, path = tmp_path / "victim", tmp_path / "out"
    victim.write_bytes(b"kept")
    if kind == "pipe":
        os.mkfifo(partial_of(path))
    else:
        partial_of(path).symlink_to(victim if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(UnfinishedError, match="is in the way"), replaced_when_whole(path):
        pytest.fail("it was used")
    assert victim.read_bytes() == b"kept" and not (tmp_path / "nowhere").exists()
    assert os.path.lexists(partial_of(path)) and not path.exists()


def test_errors_leave_nothing(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), replaced_when_whole(path) as file:
            file.write(b"half")
            raise error
        with pytest.raises(error), folder_when_whole(tmp_path / "folder") as part:
            (part / "kept").touch()
            raise error
    with pytest.raises(FileExistsError), replaced_when_whole(path, replace=False):
        pass
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_must_be_free(tmp_path, monkeypatch, links):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    path, dangling = tmp_path / "out", tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for taken in (dangling, tmp_path):
        with pytest.raises(FileExistsError), replaced_when_whole(taken, replace=False):
            pass
    with replaced_when_whole(path, replace=False, most=0o600) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x" and mode(path) == 0o600 and path.stat().st_nlink == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "out"]


def test_a_kill_without_hard_links_leaves_no_empty_file_under_the_name(tmp_path):
    """An empty key could not be used, and no run would replace it."""
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from labeldp_runtime.whole_file import replaced_when_whole\n"
        "def no_links(*_):\n    raise PermissionError(1, 'Operation not permitted')\n"
        "os.link, os.replace = no_links, lambda *_: os.kill(os.getpid(), 9)\n"
        "with replaced_when_whole(Path(sys.argv[1]), replace=False):\n    pass\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False)
    assert killed.returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == [".out.labeldp-partial"]


@pytest.mark.parametrize(
    ("is_resumed", "error", "stays"),
    [
        (True, KeyboardInterrupt, True),
        (True, OSError, False),
        (False, KeyboardInterrupt, False),
        (False, OSError, False),
    ],
)
def test_a_sealed_file_stays_only_if_it_is_interrupted_and_named_later(
    tmp_path, is_resumed, error, stays
):
    path, seen = tmp_path / "x", []

    def sealed(partial):
        seen.append(partial.read_bytes())
        raise error

    with pytest.raises(error), replaced_when_whole(path, sealed=sealed, is_resumed=is_resumed) as f:
        f.write(b"whole")
    assert seen == [b"whole"] and not path.exists()
    assert partial_of(path).exists() == stays

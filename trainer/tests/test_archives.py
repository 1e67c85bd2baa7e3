"""Archives of somebody else: they take no more memory than the file has, and nothing waits."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.run.checkpoints import load_tree
from labeldp_trainer.run.folder import DAMAGE, read_arrays, read_json, write_arrays


def shared(count):
    """An archive of many arrays that share their bytes: each entry hides the heads after it in a
    field of its own head."""
    file = io.BytesIO()
    np.save(file, np.zeros(10_000, np.uint8))
    data = file.getvalue()
    sizes = struct.pack("<III", zlib.crc32(data), len(data), len(data))
    heads, entries = b"", b""
    for i in range(count):
        name = b"a%03d.npy" % i
        start, hidden = 38 * i, 38 * (count - 1 - i)
        entries += struct.pack("<IHHHHHH", 0x02014B50, 20, 20, 0, 0, 0, 0) + sizes
        entries += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, start) + name
        heads += struct.pack("<IHHHHH", 0x04034B50, 20, 0, 0, 0, 0) + sizes
        heads += struct.pack("<HH", len(name), hidden) + name
    whole = heads + data
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(entries), len(whole), 0)
    return whole + entries + end


def test_what_write_arrays_writes_is_read(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "['x']['y']": np.zeros((0, 2), np.int32)}
    write_arrays(tmp_path / "a.npz", arrays)
    found = read_arrays(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_a_small_archive_is_no_bomb(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(shared(100))
    with pytest.raises(DAMAGE):
        read_arrays(path)
    np.savez_compressed(path, a=np.zeros(1 << 20))
    with pytest.raises(DAMAGE):
        read_arrays(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    for read in (read_arrays, read_json):
        with pytest.raises(OSError, match="no file"):
            read(tmp_path / "a.npz")


@pytest.mark.parametrize("names", [["base"], ["['a']", "['a']['b']"]])
def test_parameters_that_are_no_tree_are_one_error(tmp_path, names):
    write_arrays(tmp_path / "params.npz", dict.fromkeys(names, np.zeros(2)))
    with pytest.raises(RunFolderError, match="of another model"):
        load_tree(tmp_path / "params.npz")

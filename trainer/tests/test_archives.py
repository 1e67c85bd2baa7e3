"""Archives of somebody else: they take no more memory than the file has, and nothing waits."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
from labeldp_trainer.data.arrays import batches_of_npz, read_npz
from labeldp_trainer.errors import DAMAGE, DataError
from labeldp_trainer.run.folder import read_arrays, write_arrays


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


HEADS = ["{'descr': (((", "{'descr': '''", "x\n  y\n z", "(" * 3000]
HEADS += [
    f"{{'descr': {kind}, 'fortran_order': False, 'shape': (1,)}}"
    for kind in ("('S',)", "'i4,i4,('", "'|O'", "None", "('<i4', (2000000000,))")
]
HEADS += ["{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 8)}"]


@pytest.mark.parametrize("head", [*HEADS, None])
def test_an_entry_that_is_no_array_is_one_error(tmp_path, head):
    """numpy reads a head as Python, with errors of the tokenizer and of the parser."""
    entry = b"no array"
    if head is not None:
        entry = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", entry)
    with pytest.raises(DAMAGE):
        read_arrays(tmp_path / "a.npz")
    for read in (lambda path: read_npz(path, ["x"]), lambda path: [*batches_of_npz(path, "x")]):
        with pytest.raises(DataError, match=r"is not an \.npz archive|need more memory"):
            read(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(10**15, 0), (0, 10**9, 2), (1 << 17, 0)])
def test_an_array_without_bytes_has_no_endless_rows(tmp_path, shape):
    """JAX goes through all of them."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("x.npy", "w") as entry:
        head = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(entry, head)
    with pytest.raises(DAMAGE):
        read_arrays(tmp_path / "a.npz")

"""Pairs of batches that differ in one label, with the same words: nothing else may differ."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import Key, Randomizer
from labeldp_verify import check_bytes

from labeldp_compile.cli import randomize as randomize_module
from labeldp_compile.tabular import csv_file
from runtime.tests.label_containers import CONTAINERS, NUMBERS, TEXTS, UNDECLARED, Container
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from tests.fuzz.guard import FoundError, labeldp

_CODES = spec(
    values=[-20, 2**53, 2**53 + 1, 2**63 - 1], weights=[4, 3, 2, 1], mechanism="randomized_response"
)
FILES = sorted((Path(__file__).parents[2] / "tests/golden/plain").glob("*.onnx"))
MOST_ROWS = 40


@cache
def artifact(index: int) -> bytes:
    """One of tests/golden, or one with codes that float64 does not tell apart."""
    return FILES[index].read_bytes() if index < len(FILES) else compile_text(_CODES).model


@cache
def _randomizer(index: int, keyed: bool) -> Randomizer:
    key = Key(bytes(range(32))) if keyed else None
    return Randomizer(artifact(index), key=key, context="y" if keyed else None)


_verified = cache(check_bytes)  # what takes most of the time, and sees no label


def try_pair(random: Random) -> str:
    """Randomize two batches in one kind of container, through Python.

    Returns the kind; raises FoundError if anything but the row of the replaced label differs.
    """
    index, keyed = random.randrange(len(FILES) + 1), random.random() < 0.5
    randomizer = _randomizer(index, keyed)
    container = random.choice(random.choice([NUMBERS, TEXTS, UNDECLARED]))
    rows = random.randrange(1, MOST_ROWS)
    labels = random.choices(container.values, k=rows)
    place, value = random.randrange(rows), random.choice(container.values)
    replaced = [*labels[:place], value, *labels[place + 1 :]]
    shape = randomizer._words_shape(rows)
    words = np.random.default_rng(random.getrandbits(64)).integers(0, 2**64, shape, np.uint64)
    version = random.getrandbits(64)

    def private(values: list[Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            column = container.make(values)
            warnings.simplefilter("error")
            if keyed:
                return randomizer(column, ids=np.arange(rows), version=version)
            return randomizer.apply_words(column, words)

    what = f"{container.name}, artifact {index}, row {place} of {rows}"
    try:
        before, after = private(labels), private(replaced)
    except Exception as error:
        raise FoundError(f"{what}: {error!r}") from error
    if type(before) is not type(after) or _kind(before) != _kind(after):
        raise FoundError(f"{what}: {_kind(before)} and {_kind(after)}")
    one, other = _without(before, place), _without(after, place)
    if one != other:
        raise FoundError(f"{what}: another row differs")
    return container.name.split()[0]


def _kind(column: Any) -> str:
    return str(getattr(column, "type", None) or column.dtype)


def _without(column: Any, place: int) -> list[Any]:
    rows = np.asarray(column).tolist()
    return rows[:place] + rows[place + 1 :]


_CELLS = (
    *(b"0", b"3", b"7", b"300", b"-20", b"2.5", b"1e0", b"+1", b" 5 ", b"4.0", b"9007199254740993"),
    *(b"", b"nan", b"inf", b"-Infinity", b"true", b"1e999999999999999", b"9" * 5000, b"0x10"),
    *(b"1_000", b"1,5", "٣".encode(), b"red", "grün".encode(), b"mauve", b"\xff\xfe", b"red\xc3"),
    *(b'say "hi"', b"two\nlines", b"a\r\nb", b"\0", b"red\0", b"x" * 3000, b"1" * 3000, b"unknown"),
    *("\ufeff".encode(), "\u2028".encode(), b"=1+1", b"None", b"\x1b[2J"),
)


@cache
def _in_parquet() -> tuple[Container, ...]:
    """The containers that a Parquet file can hold, and dictionaries without nulls inside."""
    found = []
    for container in CONTAINERS:
        if not container.name.startswith("arrow"):
            continue
        table = pa.table({"y": container.make([container.values[0]])})
        try:
            pq.write_table(table, pa.BufferOutputStream())
        except pa.ArrowNotImplementedError:
            continue
        found.append(container)
        if container.name in ("arrow int64", "arrow chunked", "arrow raw text"):
            found.append(replace(container, make=_encoded(container.make)))
    return tuple(found)


def _encoded(make: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda labels: make(labels).dictionary_encode()


@dataclass(frozen=True)
class _Files:
    """How one column of labels becomes a file: ``write(labels)``."""

    name: str
    values: tuple[Any, ...]
    write: Callable[[list[Any]], None]


def try_file_pair(random: Random, folder: Path) -> str:
    """The same through ``labeldp randomize``: exit code, messages, schema and all other rows.

    The words come from a key and ids.
    """
    index = random.randrange(len(FILES) + 1)
    randomizer = _randomizer(index, keyed=False)
    (folder / "a.onnx").write_bytes(artifact(index))
    if not (folder / "k.key").exists():
        labeldp("keygen", folder / "k.key", codes=(0,))
    rows = random.randrange(1, MOST_ROWS)
    fitting = [c for c in _in_parquet() if c.fits(randomizer.label_type)]
    files = random.choice([_csv, _parquet])(random, folder, fitting)
    labels = random.choices(files.values, k=rows)
    place, value = random.randrange(rows), random.choice(files.values)
    replaced = [*labels[:place], value, *labels[place + 1 :]]
    output = folder / f"out.{random.choice(['csv', 'parquet'])}"
    added = ["--add", "z"] if random.random() < 0.3 else []
    column = str(randomizer.certificate["label"]["column"])
    block = random.choice([7, 64, 1 << 12, 1 << 22])

    def run(values: list[Any]) -> tuple[str, Any, list[Any]]:
        files.write(values)
        arguments = [folder / "a.onnx", folder / files.name, "-o", output, "--column", "y", *added]
        arguments += ["--key", folder / "k.key", "--id-column", "id", "--overwrite"]
        with (
            patch.object(csv_file, "BLOCK_BYTES", block),
            patch.object(randomize_module, "check_bytes", _verified),
        ):
            result = labeldp("randomize", *arguments, codes=(0, 2))
        if result.exit_code == 2:  # codes in a column of floats, or a type that CSV cannot keep
            return result.stderr, None, []
        schema, found = _read(output)
        if len(found) != rows:
            raise FoundError(f"{len(found)} rows of {rows}")
        return result.stdout + result.stderr, schema, found[:place] + found[place + 1 :]

    what = f"{files.name}, {column}, {output.suffix}, row {place} of {rows}"
    before, after = run(labels), run(replaced)
    for part, one, other in zip(("messages", "schema", "rows"), before, after, strict=True):
        if one != other:
            raise FoundError(f"{what}: {part} differ: {one!r:.300} and {other!r:.300}")
    return files.name if before[2] or rows == 1 else f"{files.name}, refused"


def _csv(random: Random, folder: Path, _: list[Container]) -> _Files:
    always, end = random.random() < 0.5, random.choice([b"\n", b"\r\n"])

    def quoted(cell: bytes) -> bytes:
        if always or any(c in cell for c in b',"\r\n') or cell == b"":
            return b'"' + cell.replace(b'"', b'""') + b'"'
        return cell

    def write(labels: list[bytes]) -> None:
        lines = [b"id,y,x"]
        lines += [b"%d,%s,%d" % (i, quoted(label), 7 * i) for i, label in enumerate(labels)]
        (folder / "t.csv").write_bytes(end.join(lines) + (end if always else b""))

    return _Files("t.csv", _CELLS, write)


def _parquet(random: Random, folder: Path, fitting: list[Container]) -> _Files:
    container = random.choice(fitting)
    group = random.choice([1, 5, 1000])

    def write(labels: list[Any]) -> None:
        column = container.make(labels)
        names = [str(i) for i in range(len(labels))]
        table = pa.table({"id": range(len(labels)), "y": column, "x": names})
        pq.write_table(table, folder / "t.parquet", row_group_size=group)

    return _Files("t.parquet", container.values, write)


def _read(path: Path) -> tuple[Any, list[Any]]:
    """Schema and rows of an output, the columns of true labels included, by other readers."""
    if path.suffix == ".csv":
        text = path.read_bytes().decode(errors="backslashreplace").replace("\0", "\\0")
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        return header, rows
    table = pq.read_table(path)
    cells = []
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        column = column.cast(pa.large_binary()) if text else column
        cells.append([repr(value) for value in column.to_pylist()])
    schema = [(field.name, str(field.type), field.nullable) for field in table.schema]
    return schema, list(zip(*cells, strict=True))

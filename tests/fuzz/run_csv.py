"""CSV files with faults of quotes and line ends: no byte of a label leaves its cell."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
from labeldp_verify.forms import CategoricalDomain, JointDomain

from labeldp_compile.errors import DataError
from labeldp_compile.tabular import csv_file
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.tabular.reader import open_table
from labeldp_compile.tabular.writer import Rewriting
from tests.fuzz.guard import FoundError

_DOMAIN = CategoricalDomain(("n", "y"), "n")
_PLAIN = ("", "k", "7", "a b", " k ", "''", "é", "\\")
_ODD = ("d{0}d", "{0}", 'q"q', '"', '\\"')


def try_csv(random: Random, folder: Path) -> str:
    """Randomize a table whose labels, and nothing else, are capital letters.

    The file is well-formed until up to four quotes are added or removed, and one byte elsewhere.
    Two quotes at the edges of cells of one column are tried most: readers believe them. Raises
    FoundError if a capital letter is in the output.
    """
    mark, end = random.choice(",;\t|"), random.choice(["\n", "\r\n", "\r"])
    width = random.randint(2, 6)
    labels = sorted(random.sample(range(width), random.choice([1, 1, 1, 2])))
    names = [f"y{place}" if place in labels else f"x{place}" for place in range(width)]
    always, odd, odd_labels = (random.choice([0.0, 0.0, 0.0, 0.2, 1.0]) for _ in range(3))
    texts = _PLAIN + (_ODD if odd else ()) + (("{0}\n",) if odd == 1 else ())
    rows = [names]
    for _ in range(random.randint(1, 12)):
        rows.append(
            [
                _label(random, mark, odd_labels)
                if place in labels
                else random.choice(texts).format(mark)
                for place in range(width)
            ]
        )
    cells = [[_cell(random, text, mark, always) for text in row] for row in rows]
    faults = random.choice([0, 1, 2, 2, 3, 4])
    if len(cells) > 2 and random.random() < 0.5:  # in one column: rows keep their number of cells
        place = random.randrange(width)
        first, last = sorted(random.sample(range(1, len(cells)), 2))
        cells[first][place] = f'"{cells[first][place]}'
        cells[last][place] = f'{cells[last][place]}"'
        faults = random.choice([0, 0, 1])
    text = end.join(mark.join(row) for row in cells) + random.choice(["", end])
    for _ in range(faults):
        text = _with_fault(random, text, '"')
    if random.random() < 0.3:
        text = _with_fault(
            random, text, random.choice(["\n", "\r", "\0", "\\", mark, "", "\ufeff"])
        )
    data = text.encode()
    if random.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    path = folder / random.choice(["t.csv", "t.csv.gz"])
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    output = folder / "out.csv"
    domain = _DOMAIN if len(labels) == 1 else JointDomain.of((_DOMAIN, _DOMAIN))
    try:
        with patch.object(csv_file, "BLOCK_BYTES", random.choice([3, 16, 64, 1 << 22])):
            columns = [names[place] for place in labels]
            opened = open_table(path, columns, domain, all_columns=True, form=TextForm(mark))
            Rewriting(opened, output, _constant, text=TextForm(mark)).run()
    except DataError as error:
        if any(letter in str(error).replace(str(path), "") for letter in "BGHJKQWZ"):
            raise FoundError(f"a message quotes a label: {error}: {data!r}") from None
        return "refused"
    if any(letter in output.read_bytes() for letter in b"BGHJKQWZ"):
        raise FoundError(f"a label left its cell: {data!r}: {output.read_bytes()!r}")
    return "accepted"


def _constant(labels):
    if isinstance(labels, dict):
        return {name: _constant(column) for name, column in labels.items()}
    return np.full(len(labels), "n", dtype=object)


def _label(random: Random, mark: str, odd: float) -> str:
    text = "".join(random.choices("BGHJKQWZ", k=random.randint(1, 3)))
    if random.random() >= odd:
        return text
    added = random.choice(['"', mark, "\n", "\r", f"{mark}{mark}\n"])
    return random.choice([text + added, added + text])


def _cell(random: Random, text: str, mark: str, always: float) -> str:
    if random.random() < always or any(c in text for c in f'{mark}"\r\n'):
        return '"{}"'.format(text.replace('"', '""'))
    return text


def _with_fault(random: Random, text: str, added: str) -> str:
    """A text with something added at one place, or with one quote less."""
    quotes = [place for place, c in enumerate(text) if c == '"']
    if added == '"' and quotes and random.random() < 0.4:
        place = random.choice(quotes)
        return text[:place] + text[place + 1 :]
    place = random.randrange(len(text) + 1)
    return text[:place] + added + text[place:]

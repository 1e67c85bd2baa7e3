"""CSV: other columns stay the text that they were."""

import pyarrow.csv as pa_csv
from labeldp_runtime import Randomizer
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.tabular.reader import open_table
from labeldp_compile.tabular.writer import Rewriting
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

ROWS = [
    ("007", "3", "1e400", 'say "hi"'),
    ("1.10", "", "NA", "a,b"),
    ("", "12", "true", "two\nlines"),
    ("ünï", "4.0", "2024-01-01", ""),
]


def test_other_columns_are_kept_to_the_letter(tmp_path):
    quoted = ('"{}"'.format(cell.replace('"', '""')) for row in ROWS for cell in row)
    cells = list(quoted)
    lines = [",".join(cells[i : i + 4]) for i in range(0, len(cells), 4)]
    source = tmp_path / "in.csv"
    source.write_text("id,y,mixed,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
    table = open_table(source, "y", IntegerDomain(0, 9), all_columns=True)
    output = tmp_path / "out.csv"
    randomizer = Randomizer(compile_text(INTEGER_SPEC).model)
    assert Rewriting(table, output, randomizer).run() == 4
    reread = open_table(output, "y", IntegerDomain(0, 9), all_columns=True)
    (batch,) = reread.batches()
    for index in (0, 2, 3):
        assert batch.column(index).to_pylist() == [row[index] for row in ROWS]
    assert pa_csv.read_csv(output)["y"].null_count == 0

"""Write artifacts of format 1.6, whose groups somebody declared public:
``python -m tests.old_files.write_declared``.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

import shutil
from pathlib import Path

from tests.old_files.write import write_missing
from tests.old_files.write_groups import FOLDER as OLDER
from tests.old_files.write_groups import outputs_of

FOLDER = Path(__file__).parent / "groups_v2"
NAMES = ("text", "integers", "numbered", "bands", "columns", "assigned", "real")


def main() -> None:
    """Compile the specs of format 1.1 of which the folder holds no artifact yet."""
    FOLDER.mkdir(exist_ok=True)
    for name in ("rows.csv", "teams.csv"):
        if not (FOLDER / name).exists():
            shutil.copy(OLDER / name, FOLDER / name)
    texts = {name: (OLDER / f"{name}.yaml").read_text("utf-8") for name in NAMES}
    write_missing(FOLDER, texts, lambda path, certificate: outputs_of(path))


if __name__ == "__main__":
    main()

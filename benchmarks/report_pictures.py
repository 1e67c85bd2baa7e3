"""The pictures that `labeldp report` makes, for the README and docs/commands.md.

    python benchmarks/report_pictures.py [FOLDER]       (docs/images)

Screenshots, by headless Chromium, of the pages of the quickstart (RR-on-Bins) and of the optimal
unbiased randomizer of weeks worked in a year (53 labels, ε = 2, uniform prior); with the folder of
the census income data in LABELDP_DATA, also the one picture of that randomizer with a private
prior.
Needs `chromium` and Pillow.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.other_languages.browser import browser_page

HERE = Path(__file__).parents[1]
WEEKS = """
version: 1
name: weeks-worked
label: {{column: weeks_worked_in_year, domain: {{kind: integer, min: 0, max: 52}}}}
loss: squared
privacy: {{epsilon: 2}}
prior: {prior}
mechanism: {{kind: optimal_unbiased}}
"""
WIDTH = 1000


def labeldp(*arguments):
    """Run a command of labeldp; its words go to standard error."""
    command = [sys.executable, "-m", "labeldp_compile.cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def screenshot(tab, page, picture):
    """The whole page, in 256 colours."""
    whole = page.with_suffix(".png")
    tab.open(page.as_uri(), width=WIDTH)
    tab.screenshot(whole)
    with Image.open(whole) as image:
        colours = image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
        colours.save(picture, optimize=True)


def main(folder):
    with tempfile.TemporaryDirectory() as name, browser_page() as tab:
        work = Path(name)
        weeks = work / "weeks-worked.yaml"
        weeks.write_text(WEEKS.format(prior="{kind: uniform}"), encoding="utf-8")
        for spec in (HERE / "specs" / "doctor-visits.yaml", weeks):
            artifact, page = work / f"{spec.stem}.onnx", work / f"{spec.stem}.html"
            labeldp("compile", spec, "-o", work)
            labeldp("report", artifact, "--compare", "-o", page, "--spec", spec)
            screenshot(tab, page, folder / f"report-{spec.stem}.png")
        if data := os.environ.get("LABELDP_DATA"):
            table = Path(data).absolute() / "census_kdd_train.parquet"
            prior = f"{{kind: private, data: '{table}'}}"
            weeks.write_text(WEEKS.format(prior=prior), encoding="utf-8")
            artifact = work / "weeks-worked.onnx"
            labeldp("compile", weeks, "-o", work, "--overwrite")
            labeldp("report", artifact, "--compare", "-o", folder / "report.png", "--overwrite")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "docs" / "images")

"""The pictures that `labeldp report` makes, for the README and docs/commands.md.

    python benchmarks/report_pictures.py [FOLDER]       (docs/images)

Screenshots, by headless Chromium, of the pages of the quickstart (RR-on-Bins) and of the optimal
unbiased randomizer of weeks worked in a year (53 labels, ε = 2, uniform prior); with the folder of
the census income data in LABELDP_DATA, also the one picture of that randomizer with a private
prior.
Needs `chromium` and Pillow.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

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
WIDTH, HEIGHT = 1000, 12_000


def labeldp(*arguments):
    """Run a command of labeldp; its words go to standard error."""
    command = [sys.executable, "-m", "labeldp_compile.cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def screenshot(page, picture):
    """The page from its top, without the empty rest below it, in 256 colours."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("needs chromium")
    size = f"--window-size={WIDTH},{HEIGHT}"
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", size]
    made = page.with_suffix(".png")
    subprocess.run(
        [chromium, *options, f"--screenshot={made}", page.as_uri()], check=True, capture_output=True
    )
    with Image.open(made) as image:
        colours = image.convert("RGB")
        ground = Image.new("RGB", colours.size, colours.getpixel((0, HEIGHT - 1)))
        end = ImageChops.difference(colours, ground).getbbox()[3]
        colours.crop((0, 0, WIDTH, min(end + 40, HEIGHT))).quantize(
            256, method=Image.Quantize.FASTOCTREE
        ).save(picture, optimize=True)


def main(folder):
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        weeks = work / "weeks-worked.yaml"
        weeks.write_text(WEEKS.format(prior="{kind: uniform}"), encoding="utf-8")
        for spec in (HERE / "specs" / "doctor-visits.yaml", weeks):
            artifact, page = work / f"{spec.stem}.onnx", work / f"{spec.stem}.html"
            labeldp("compile", spec, "-o", work)
            labeldp("report", artifact, "-o", page, "--spec", spec)
            screenshot(page, folder / f"report-{spec.stem}.png")
        if data := os.environ.get("LABELDP_DATA"):
            table = Path(data).absolute() / "census_kdd_train.parquet"
            prior = f"{{kind: private, data: '{table}'}}"
            weeks.write_text(WEEKS.format(prior=prior), encoding="utf-8")
            artifact = work / "weeks-worked.onnx"
            labeldp("compile", weeks, "-o", work, "--overwrite")
            labeldp("report", artifact, "-o", folder / "report.png", "--overwrite")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "docs" / "images")

"""Pictures of the pages of `labeldp report`, for docs/index.md and docs/report.md.

    python benchmarks/report_pictures.py [FOLDER]       (docs/images)

Screenshots, by headless Chromium: the first screen of the page of specs/doctor-visits.yaml and the
whole of it, and the whole page of the optimal unbiased randomizer of weeks worked in a year (53
labels, ε = 2, uniform prior). The picture of a first screen holds its sentences, which a test
compares with those that the command writes now. Needs `chromium` and Pillow.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.languages.browser import browser_page

HERE = Path(__file__).parents[1]
WEEKS = """
version: 1
name: weeks-worked
label: {column: weeks_worked_in_year, domain: {kind: integer, min: 0, max: 52}}
loss: squared
privacy: {epsilon: 2}
prior: {kind: uniform}
mechanism: {kind: optimal_unbiased}
"""
WIDTH, FIRST_WIDTH, MARGIN = 1000, 820, 20


def labeldp(*arguments):
    """Run a command of labeldp; its words go to standard error."""
    command = [sys.executable, "-m", "labeldp_compile.cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def first_screen(page):
    """The sentences above the first section of the page."""
    header = re.search("<header>(.*?)</header>", page.read_text(encoding="utf-8"), re.S)[1]
    return " ".join(re.sub("<[^>]*>", " ", header).split())


def screenshot(tab, page, picture, *, first=False):
    """The whole page, or what is above its first section, in 256 colours."""
    part, width = page.with_suffix(".png"), FIRST_WIDTH if first else WIDTH
    tab.open(page.as_uri(), width=width)
    if first:
        end = tab.run("document.querySelector('header').getBoundingClientRect().bottom") + MARGIN
    tab.screenshot(part, {"x": 0, "y": 0, "width": width, "height": end} if first else None)
    with Image.open(part) as image:
        colours = image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
        sentences = PngInfo()
        sentences.add_itxt("sentences", first_screen(page))
        colours.save(picture, optimize=True, pnginfo=sentences if first else None)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, browser_page() as tab:
        work = Path(name)
        weeks = work / "weeks-worked.yaml"
        weeks.write_text(WEEKS, encoding="utf-8")
        for spec in (HERE / "specs" / "doctor-visits.yaml", weeks):
            artifact, page = work / f"{spec.stem}.onnx", work / f"{spec.stem}.html"
            labeldp("compile", spec, "-o", work)
            labeldp("report", artifact, "-o", page, "--spec", spec)
            screenshot(tab, page, folder / f"report-{spec.stem}.png")
            if spec.stem == "doctor-visits":
                screenshot(tab, page, folder / "report.png", first=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "docs" / "images")

"""The report in headless Chromium: no request, no complaint, readable in both schemes, on paper."""

import re

import pytest

from labeldp_compile.report.page import RunFindings, examine, report_page, run_page
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.report.conftest import HOSTILE_SPEC
from tests.report.test_decision import made_run, promise

SPECS = {
    "unbiased": INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased"),
    "biased": INTEGER_SPEC,
    "hostile": HOSTILE_SPEC,
}
NARROW, MOST_SHEETS = 390, 2
PERSON_SPEC = INTEGER_SPEC.replace(
    "epsilon: 1.0", "epsilon: 3, unit: person, person_column: who, labels_per_person: 3"
)

# Every visible text whose colour stands out from what is behind it by less than 4.5 to 1.
FAINT = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element.closest('svg') ? style.fill : style.color;
    const pair = [luminance(parse(colour)), luminance(ground(element))];
    const [one, other] = pair.sort((a, b) => a - b);
    seen += 1;
    if ((other + 0.05) / (one + 0.05) < 4.5) faint.push(walker.currentNode.data.trim());
  }
  return {seen, faint};
})()
"""
# Pairs of level texts in a picture that lie on each other.
OVERLAPS = """
[...document.querySelectorAll('svg')].flatMap((svg) => {
  const level = [...svg.querySelectorAll('text')].filter((t) => !/rotate\\(-?[1-9]/.test(
    t.getAttribute('transform') || ''));
  const boxes = level.map((t) => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => [one, other]));
})
"""
# Pictures that a reader would have to scroll to see; the height of their smallest text, in pixels.
OUT_OF_SIGHT = """[...document.querySelectorAll('svg')].filter((svg) => {
  const box = svg.getBoundingClientRect();
  return box.left < 0 || box.right > innerWidth || svg.closest('.wide');
}).length"""
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('svg text')].map((text) =>
  parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a))"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, spec in SPECS.items():
        (folder / f"{name}.onnx").write_bytes(compile_text(spec).model)
        found = examine(folder / f"{name}.onnx")
        page = report_page(found)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in SPECS}


def test_the_recorder_sees_requests_errors_and_faint_text(tab, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<body><img src="http://127.0.0.1:9/x.png"><p style="color: #999; background: #fff">faint'
        "</p><script>console.error('said'); null.x</script>"
    )
    tab.open(bad.as_uri())
    assert "http://127.0.0.1:9/x.png" in tab.requests
    assert any("said" in text for text in tab.complaints)
    assert any("TypeError" in text for text in tab.complaints)
    assert tab.run(FAINT)["faint"] == ["faint"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", list(SPECS))
def test_no_request_no_complaint_and_readable(tab, addresses, name, dark):
    tab.open(addresses[name], dark=dark)
    assert [url for url in tab.requests if not url.startswith("data:")] == [addresses[name]]
    assert tab.complaints == []
    ink = tab.run("getComputedStyle(document.body).color")
    assert ink == ("rgb(233, 234, 236)" if dark else "rgb(26, 26, 26)")
    result = tab.run(FAINT)
    assert result["seen"] > 200 and result["faint"] == []
    assert tab.run(OVERLAPS) == []
    shown = "id => getComputedStyle(document.getElementById(id)).display"
    schemes = [tab.run(f"({shown})('matrix-in-{scheme}')") for scheme in ("light", "dark")]
    assert schemes == (["none", "inline"] if dark else ["inline", "none"])
    assert tab.run("document.querySelectorAll('img, iframe, object').length") == 0
    tab.open(addresses[name], dark=dark, width=NARROW)
    assert tab.run("document.documentElement.scrollWidth") == NARROW
    assert tab.run(OUT_OF_SIGHT) == 0 and tab.run(SMALLEST_TEXT) >= 8


@pytest.mark.parametrize("name", [*SPECS, "person", "run", "run that says much"])
def test_it_has_at_most_two_sheets_of_paper(tab, addresses, tmp_path, name):
    if name == "person":
        (tmp_path / "a.onnx").write_bytes(compile_text(PERSON_SPEC).model)
        page = report_page(examine(tmp_path / "a.onnx"))
    elif name not in addresses:
        stated = promise(unit="user")
        if name != "run":
            stated["not_covered"] = ["What nobody can know of a table of many rows. " * 20] * 10
        page = run_page(RunFindings(None, made_run(), stated, "0" * 64, None, None, None))
    else:
        tab.open(addresses[name])
    if name not in addresses:
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        tab.open((tmp_path / "page.html").as_uri())
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", tab.pdf())) <= MOST_SHEETS


def test_it_prints(tab, addresses):
    tab.open(addresses["biased"], dark=True)
    assert tab.pdf().startswith(b"%PDF")
    tab.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert tab.run("getComputedStyle(document.body).color") == "rgb(26, 26, 26)"
        assert tab.run(FAINT)["faint"] == []
    finally:
        tab.call("Emulation.setEmulatedMedia", media="")

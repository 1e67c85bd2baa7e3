"""Labels of several columns with a table for each public group, from a spec to private labels."""

import pytest
from labeldp_runtime import Randomizer
from labeldp_verify import check_bytes

from labeldp_compile import compile_spec

SPEC = """
version: 1
name: both
label:
  columns:
    - column: bought
      domain: {kind: categorical, values: ["no", "yes"]}
      out_of_domain: {default: "no"}
      LOSS_1
    - column: code
      domain: {kind: integer, min: 0, max: 2}
      LOSS_2
loss: LOSS
privacy: {epsilon: 3}
prior: {kind: public, data: table.csv}
groups: {column: region, values: [a, b]}
mechanism: {kind: randomized_response}
"""
ROWS = ["no,0,a"] * 60 + ["no,1,a"] * 30 + ["yes,2,b"] * 50 + ["yes,1,b"] * 40 + ["no,2,c"] * 9


@pytest.mark.parametrize("loss", ["zero_one", "sum"])
def test_such_a_spec_compiles_verifies_and_randomizes(loss, tmp_path):
    (tmp_path / "table.csv").write_text("bought,code,region\n" + "\n".join(ROWS) + "\n")
    losses = ("loss: zero_one", "loss: absolute") if loss == "sum" else ("", "")
    text = SPEC.replace("LOSS_1", losses[0]).replace("LOSS_2", losses[1]).replace("LOSS", loss)
    (tmp_path / "both.yaml").write_text(text)
    compiled = compile_spec(tmp_path / "both.yaml")
    report = check_bytes(compiled.model).require()
    assert report.artifact.groups.tables == len(report.artifact.tables) == 3
    assert report.certificate.label_columns == ["bought", "code"]
    assert [table.size for table in report.certificate.tables] == [90, 90, 9]
    private = Randomizer(compiled.model)(
        {"bought": ["no", "yes", "yes"], "code": [0, 2, 1]}, groups=["a", "b", "elsewhere"]
    )
    assert set(private["bought"]) <= {"no", "yes"} and set(private["code"]) <= {0, 1, 2}

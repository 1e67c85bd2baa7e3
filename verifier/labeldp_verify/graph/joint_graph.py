"""The parts of a graph for labels of several columns: from them to one row, and back to columns.

A row is Σ place · stride over the columns; place j of a private number is number ÷ stride mod size.
"""

from labeldp_verify.forms import Domain, JointDomain, columns_of
from labeldp_verify.graph.label_graph import add_row, label_type
from labeldp_verify.graph.nodes import INT64, Graph, output_type

PRIVATE_NUMBER = "private_number"


def label_inputs(domain: Domain) -> list[str]:
    """The names of the graph's inputs for the label, one for each column."""
    if not isinstance(domain, JointDomain):
        return ["label"]
    return [f"label_{i}" for i in range(1, len(domain.parts) + 1)]


def add_joint_index(
    graph: Graph, domain: JointDomain, shape: str, *, portable: bool = False
) -> str:
    """Add the nodes from the columns' inputs [N] to the row index [N] (int64); returns its name.

    ``shape`` names the first column's own shape, which each gets before they meet, so that one is
    never shared by several labels.
    """
    row = ""
    columns = zip(label_inputs(domain), domain.parts, domain.strides, strict=True)
    for name, part, stride in columns:
        with graph.within(f"{name}_"):
            place = add_row(graph, part, name, None, portable=portable)
            own = graph.node("Reshape", [place, shape], "place", allowzero=1)
            if stride > 1:
                own = graph.node("Mul", [own, graph.scalar("stride", INT64, stride)], "part")
            row = graph.node("Add", [row, own], "sum") if row else own
    return row


def declare_labels(graph: Graph, domain: Domain) -> str:
    """Declare the inputs [N] of the label; returns the name of the first."""
    for name, part in zip(label_inputs(domain), columns_of(domain), strict=True):
        graph.input(name, label_type(part), ["N"])
    return label_inputs(domain)[0]


def add_columns(graph: Graph, domain: JointDomain) -> None:
    """Add the nodes from ``private_number`` [N] (int64) to the private columns [N]."""
    parts = zip(label_inputs(domain), domain.column_values, domain.strides, strict=True)
    for i, (label, values, stride) in enumerate(parts):
        name = f"private_{label}"
        graph.output(name, output_type(values[0]), ["N"])
        place = PRIVATE_NUMBER
        with graph.within(f"{name}_"):
            if stride > 1:
                place = graph.node("Div", [place, graph.scalar("stride", INT64, stride)], "above")
            if i > 0:
                size = graph.scalar("size", INT64, len(values))
                place = graph.node("Mod", [place, size], "place")
            listed = graph.vector("values", output_type(values[0]), values)
        graph.node("GatherElements", [listed, place], name, axis=0)

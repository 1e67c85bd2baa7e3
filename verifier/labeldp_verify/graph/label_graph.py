"""The first part of every graph: from any label to a row index in [0, k), without ever failing.

NaN, infinities, numbers outside the domain and unknown categories become the default label, or are
clamped to an end of the domain. int64 Min, Max and Clip compute wrongly in some versions of
onnxruntime, and Clip lets NaN through, so comparisons with Where replace them where that matters.
"""

from labeldp_verify.forms import CategoricalDomain, Domain, GridDomain, IntegerDomain, RealDomain
from labeldp_verify.graph.nodes import DOUBLE, INT64, STRING, UINT64, Attribute, Graph


def label_type(domain: Domain) -> int:
    """ONNX element type of the label input."""
    if isinstance(domain, RealDomain):
        return DOUBLE
    if isinstance(domain, CategoricalDomain) and domain.is_text:
        return STRING
    return INT64


def add_row(
    graph: Graph,
    domain: Domain,
    label: str,
    rounding_word: str | None,
    kind: int = INT64,
    *,
    portable: bool = False,
) -> str:
    """Add the nodes from ``label`` [N] to the row index [N] of a type; returns its name.

    Rows stay float64 (DOUBLE), in which every row is exact, until something needs them as indices,
    for which INT32 is enough. Rows that are found in int64 stay so. ``rounding_word`` [N] (uint64)
    is the last random word, for a domain that rounds unbiasedly. ``portable`` rounds without
    ``Floor``.
    """
    if isinstance(domain, IntegerDomain) and domain.default is None:
        number = _clipped_integer(graph, domain, label)
    elif isinstance(domain, GridDomain):
        row = _listed_point(graph, domain, label, rounding_word)
        return row if kind == INT64 else graph.node("Cast", [row], "row_number", to=kind)
    elif isinstance(domain, RealDomain):
        position = _grid_position(graph, domain, label)
        if rounding_word is None:
            half = graph.scalar("half", DOUBLE, 0.5)
            shifted = graph.node("Add", [position, half], "grid_position_half_up")
            name = "nearest_point" if kind == INT64 else "row_number"
            number = _floor(graph, shifted, name, portable=portable)
        else:
            whole, up = _rounded_up(graph, position, rounding_word, portable=portable)
            if kind == INT64:
                below = graph.node("Cast", [whole], "row_below", to=INT64)
                return graph.node(
                    "Add", [below, graph.node("Cast", [up], "row_step", to=INT64)], "row"
                )
            step = graph.node("Cast", [up], "row_step", to=DOUBLE)
            number = graph.node("Add", [whole, step], "row_number")
    else:
        if isinstance(domain, IntegerDomain):
            inside, low = _confine(graph, domain, label, INT64)
            row = graph.node("Sub", [inside, low], "row")
        else:
            row = _categorical(graph, domain, label)
        return graph.node("Cast", [row], "row_number", to=DOUBLE) if kind == DOUBLE else row
    return number if kind == DOUBLE else graph.node("Cast", [number], "row", to=kind)


def _confine(
    graph: Graph, domain: IntegerDomain | RealDomain, label: str, element: int
) -> tuple[str, str]:
    """Replace values outside [min, max], NaN included; returns the result and the lowest label."""
    if domain.null is not None and element == DOUBLE:
        least = graph.scalar("label_least", DOUBLE, float("-inf"))
        known = graph.node("GreaterOrEqual", [label, least], "is_number")  # all but NaN
        null = graph.scalar("label_null", DOUBLE, domain.null)
        label = graph.node("Where", [known, label, null], "label_known")
    low = graph.scalar("label_min", element, domain.min)
    high = graph.scalar("label_max", element, domain.max)
    above = graph.node("GreaterOrEqual", [label, low], "not_below")
    if domain.default is None:
        raised = graph.node("Where", [above, label, low], "label_raised")  # no NaN from here on
        return graph.node("Min", [raised, high], "label_inside"), low
    below = graph.node("LessOrEqual", [label, high], "not_above")
    inside = graph.node("And", [above, below], "inside")
    default = graph.scalar("label_default", element, domain.default)
    return graph.node("Where", [inside, label, default], "label_inside"), low


def _clipped_integer(graph: Graph, domain: IntegerDomain, label: str) -> str:
    """The row [N] as float64, of a domain to whose ends labels outside are clamped."""
    # Clip is exact and fast on float64, which holds every label of the domain exactly; an int64
    # beyond 2^53 is rounded, but not back into the domain.
    number = graph.node("Cast", [label], "label_number", to=DOUBLE)
    ends = [
        graph.scalar(f"label_{end}", DOUBLE, float(value))
        for end, value in (("min", domain.min), ("max", domain.max))
    ]
    clipped = graph.node("Clip", [number, *ends], "label_inside")
    return graph.node("Sub", [clipped, ends[0]], "row_number")


def _grid_position(graph: Graph, domain: RealDomain, label: str) -> str:
    """The place [N] (float64) on the grid of labels, in 0 … points − 1, before it is rounded."""
    inside, low = _confine(graph, domain, label, DOUBLE)
    distance = graph.node("Sub", [inside, low], "distance")
    steps = graph.product(distance, "points_per_unit", domain.points_per_unit, "steps")
    last = graph.scalar("last_point", DOUBLE, float(domain.points - 1))
    return graph.node("Min", [steps, last], "grid_position")


def _listed_point(graph: Graph, domain: GridDomain, label: str, rounding_word: str | None) -> str:
    """The index [N] (int64) of the listed label that a number takes.

    The list is halved: a place moves up by half of what is left if the bound there is not above the
    label. Behind the last label all bounds are infinite, and the label is finite by then.
    """
    inside, _ = _confine(graph, domain, label, DOUBLE)
    steps = [1 << bit for bit in reversed(range((domain.size - 1).bit_length()))]
    padding = [float("inf")] * (2 * steps[0] - domain.size)
    bounds = graph.vector("bounds", DOUBLE, [*domain.bounds, *padding])
    zero = graph.scalar("first_point", INT64, 0)
    place = ""
    for step in steps:
        size = graph.scalar(f"half_{step}", INT64, step)
        if place:
            there = graph.node("Add", [place, size], f"there_{step}")
            bound = graph.node("GatherElements", [bounds, there], f"bound_{step}", axis=0)
        else:
            there, place = size, zero
            bound = graph.scalar(f"middle_{step}", DOUBLE, [*domain.bounds, *padding][step])
        reached = graph.node("GreaterOrEqual", [inside, bound], f"reached_{step}")
        place = graph.node("Where", [reached, there, place], f"place_{step}")
    if rounding_word is None:
        return place
    below = graph.node("GatherElements", [bounds, place], "point_below", axis=0)
    distance = graph.node("Sub", [inside, below], "distance")
    listed = graph.vector("per_unit", DOUBLE, domain.per_unit)
    factor = graph.node("GatherElements", [listed, place], "factor", axis=0)
    fraction = graph.node("Mul", [distance, factor], "fraction")
    up = _round_up(graph, fraction, rounding_word)
    return graph.node("Add", [place, graph.node("Cast", [up], "row_step", to=INT64)], "row_point")


def _floor(graph: Graph, number: str, name: str, *, portable: bool) -> str:
    """A number [N] ≥ 0 (float64) rounded down; onnxruntime before 1.13 has no such ``Floor``."""
    if not portable:
        return graph.node("Floor", [number], name)
    whole = graph.node("Cast", [number], f"{name}_integer", to=INT64)  # towards 0
    return graph.node("Cast", [whole], name, to=DOUBLE)


def _rounded_up(
    graph: Graph, position: str, rounding_word: str, *, portable: bool
) -> tuple[str, str]:
    """The grid point below (float64), and whether a position [N] is rounded up to the next."""
    whole = _floor(graph, position, "point_below", portable=portable)
    fraction = graph.node("Sub", [position, whole], "fraction")
    return whole, _round_up(graph, fraction, rounding_word)


def _round_up(graph: Graph, fraction: str, rounding_word: str) -> str:
    """Whether a uniform number [N] from 53 bits of the word is below the fraction [N]."""
    eleven = graph.scalar("rounding_shift", UINT64, 11)
    bits = graph.node("BitShift", [rounding_word, eleven], "rounding_bits", direction="RIGHT")
    number = graph.node("Cast", [bits], "rounding_number", to=DOUBLE)
    unit = graph.scalar("rounding_unit", DOUBLE, 2.0**-53)
    uniform = graph.node("Mul", [number, unit], "rounding_uniform")
    return graph.node("Less", [uniform, fraction], "round_up")


def _categorical(graph: Graph, domain: CategoricalDomain, label: str) -> str:
    keys = "keys_strings" if domain.is_text else "keys_int64s"
    attributes: dict[str, Attribute] = {
        keys: list(domain.values),  # type: ignore[dict-item]
        "values_int64s": list(range(domain.size)),
        "default_int64": domain.values.index(domain.default),
    }
    return graph.node("LabelEncoder", [label], "row", domain="ai.onnx.ml", **attributes)

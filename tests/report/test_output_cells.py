"""Where the outputs of a heat map stand."""

import numpy as np

from labeldp_compile.report.facts import cell_edges


def test_outputs_on_a_lattice_are_in_the_middle_of_equal_cells():
    assert np.allclose(cell_edges(np.arange(0.0, 11.0), (0.0, 10.0), 1.0), np.arange(-0.5, 11.0))
    assert len(cell_edges(np.arange(0.0, 240.0), (0.0, 239.0), 1.0)) == 81


def test_other_outputs_have_equal_cells_with_gaps_between_them():
    values = np.array([-3.0, 0.0, 0.7, 1.5, 40.0])
    edges = cell_edges(values, (0.0, 30.0), 1.0)
    assert len(edges) == 81 and np.allclose(np.diff(edges), edges[1] - edges[0])
    assert edges[0] < -3 and edges[-1] > 40
    cells = np.searchsorted(edges, values) - 1
    assert len(set(cells)) == 5  # no two in one
    assert cells[1] > cells[0] + 1 and cells[4] > cells[3] + 1  # an empty cell between them


def test_one_output():
    edges = cell_edges(np.array([4.0]), (0.0, 10.0), 1.0)
    assert edges[0] <= 0 and edges[-1] >= 10

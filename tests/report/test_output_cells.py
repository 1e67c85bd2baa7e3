"""Where the outputs of a heat map stand."""

import numpy as np

from labeldp_compile.tools.inspection.heat_map import cell_edges


def test_outputs_on_a_lattice_are_in_the_middle_of_equal_cells():
    edges, own = cell_edges(np.arange(0.0, 11.0), (0.0, 10.0), 1.0)
    assert own and np.allclose(edges, np.arange(-0.5, 11.0))
    edges, own = cell_edges(np.arange(0.0, 240.0), (0.0, 239.0), 1.0)
    assert not own and len(edges) == 121


def test_other_outputs_have_cells_of_their_own_and_gaps_between_them():
    values = np.array([-3.0, 0.0, 0.5, 1.1, 40.0])
    edges, own = cell_edges(values, (0.0, 30.0), 1.0)
    assert own and np.all(np.diff(edges) > 0)
    assert edges[0] < -3 and edges[-1] > 40
    cells = np.searchsorted(edges, values) - 1
    assert len(set(cells)) == 5  # no two in one
    middles = [(0.0 + 0.5) / 2, (0.5 + 1.1) / 2]
    assert np.isin(middles, edges).all()
    assert cells[1] > cells[0] + 1 and cells[4] > cells[3] + 1  # an empty cell between them


def test_outputs_too_near_to_each_other_are_added_up():
    values = np.array([0.0, 1e-6, 3.3, 7.0])
    edges, own = cell_edges(values, (0.0, 7.0), 1.0)
    assert not own and np.allclose(np.diff(edges), edges[1] - edges[0])
    many = np.cumsum(np.linspace(0.5, 1.5, 500))
    assert not cell_edges(many, (0.0, 500.0), 1.0)[1]


def test_one_output():
    edges, own = cell_edges(np.array([4.0]), (0.0, 10.0), 1.0)
    assert own and edges[0] <= 0 and edges[-1] >= 10
    assert np.searchsorted(edges, 4.0) - 1 == 1

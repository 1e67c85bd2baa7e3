"""Do libraries find the neighbours of a graph of images faster than exact blocks?

    python benchmarks/images_neighbours.py RUN/representation/learnt.npz --rows 20000

The file is of a run with ``representation: {kind: graph, …}``; its landmarks are the rows. Prints
seconds, seconds of the processor, and the share of the 10 nearest other rows that are found.
Libraries that are not installed are skipped. Beside the script itself, only numpy is needed.
"""

import argparse
import importlib.util
import time

import numpy as np

COUNT = 10
BLOCK = 256


def blocks(rows):
    """As ``labeldp_trainer.representations.graph`` does: products of matrices, all rows."""
    nearest = np.empty((len(rows), COUNT), np.int64)
    for start in range(0, len(rows), BLOCK):
        similar = rows[start : start + BLOCK] @ rows.T
        own = np.arange(len(similar))
        similar[own, start + own] = -2.0
        nearest[start : start + BLOCK] = np.argpartition(similar, -COUNT, axis=1)[:, -COUNT:]
    return nearest


def faiss_inverted(rows):
    """Lists around 4·√n centres, of which 16 are searched."""
    import faiss

    lists = int(4 * len(rows) ** 0.5)
    index = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], lists, faiss.METRIC_INNER_PRODUCT
    )
    index.train(rows)
    index.add(rows)
    index.nprobe = 16
    return index.search(rows, COUNT + 1)[1]


def faiss_hnsw(rows):
    """A graph of small worlds with 32 links."""
    import faiss

    index = faiss.IndexHNSWFlat(rows.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.add(rows)
    index.hnsw.efSearch = 64
    return index.search(rows, COUNT + 1)[1]


def pynndescent_(rows):
    """Nearest neighbour descent, with its defaults."""
    from pynndescent import NNDescent

    return NNDescent(rows, n_neighbors=COUNT + 1, random_state=0).neighbor_graph[0]


def hnswlib_(rows):
    """A graph of small worlds with 32 links."""
    import hnswlib

    index = hnswlib.Index("ip", rows.shape[1])
    index.init_index(len(rows), M=32, ef_construction=100)
    index.add_items(rows)
    index.set_ef(64)
    return index.knn_query(rows, COUNT + 1)[0]


WAYS = {
    "exact blocks": (None, blocks),
    "faiss-cpu, inverted lists": ("faiss", faiss_inverted),
    "faiss-cpu, HNSW": ("faiss", faiss_hnsw),
    "pynndescent": ("pynndescent", pynndescent_),
    "hnswlib": ("hnswlib", hnswlib_),
}


def main():
    """Measure what is installed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, help="the first ones; default: all")
    arguments = parser.parse_args()
    with np.load(arguments.file) as archive:
        rows = np.ascontiguousarray(archive["landmarks"].T[: arguments.rows])
    print(f"{len(rows):,} rows of {rows.shape[1]} numbers")
    exact = None
    for name, (module, way) in WAYS.items():
        if module is not None and importlib.util.find_spec(module) is None:
            print(f"  {name}: not installed")
            continue
        wall, own = time.monotonic(), time.process_time()
        found = way(rows)
        wall, own = time.monotonic() - wall, time.process_time() - own
        exact = found if exact is None else exact
        shared = (exact[:, :, None] == found[:, None, :]).any(axis=2).mean()
        times = f"{wall:.0f} s, {own:.0f} s of the processor"
        print(f"  {name}: {times}, recall {shared:.4f}", flush=True)


if __name__ == "__main__":
    main()

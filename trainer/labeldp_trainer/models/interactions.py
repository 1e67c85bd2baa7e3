"""A sum of effects of columns, pairs and triples: what ``interactions`` learns, as a model."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, PRNGKeyArray

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.losses import POISSON_FLOOR
from labeldp_trainer.models.dense import Params
from labeldp_trainer.models.layers import binned, clip, flat, log_softplus, matmul, softplus_of_log

_TWO = 2  # classes, whose terms add up to log-odds


@dataclass(frozen=True)
class Interactions:
    """f = base + Σ (product of basis functions of a term's columns)·weights.

    The parameters say which terms there are. ``columns`` have ``edges`` of numbers or the ``bins``
    of codes; ``terms`` are named by their columns, as in "0x3", and hold a table [bins, rank] for
    each of them and weights [product of ranks, k]. Numbers are clipped to ``ends``. Of classes f
    are logits. Counts are softplus(f/s)·s with s the ``softness``, so that they are positive. So
    are the probabilities of more than two classes where parameters have a ``softness``: of private
    labels, and of runs of earlier versions.
    """

    loss: str
    shape: FeatureShape
    outputs: int

    def init(self, key: PRNGKeyArray) -> Params:
        """No terms: the model before it is fitted."""
        del key
        start: Params = {"base": jnp.zeros(self.outputs), "columns": {}, "terms": {}}
        if self.loss == "cross_entropy":
            return start
        return start | {
            "softness": jnp.ones(self.outputs),
            "log_softness": jnp.zeros(self.outputs),
            "ends": jnp.array([-jnp.inf, jnp.inf]),
        }

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Float[Any, "b k"]:
        """Logits, or one number an example."""
        y = self._sum(params, x)
        if self.loss == "squared":
            return clip(y, params["ends"][0], params["ends"][1])
        if self.loss == "cross_entropy" and (self.outputs == _TWO or "softness" not in params):
            return y
        softness = params["softness"]
        logs = log_softplus(y / softness[None, :]) + params["log_softness"][None, :]
        return logs if self.loss == "cross_entropy" else softplus_of_log(logs, POISSON_FLOOR)

    def require(self, params: Params) -> Params:
        """The same. Raises ValueError if they are no parameters of such a model."""
        try:
            for name in ("base", "softness", "log_softness"):
                if name in params and params[name].shape != (self.outputs,):
                    raise ValueError(name)
            columns = params.setdefault("columns", {})
            bins = {name: self._bins_of(int(name), column) for name, column in columns.items()}
            for name, term in params.setdefault("terms", {}).items():
                if term["weights"].shape[1:] != (self.outputs,):
                    raise ValueError("weights")
                for column, table in zip(name.split("x"), term["tables"].values(), strict=True):
                    if len(table) < bins[column]:  # JAX would take another row
                        raise ValueError("tables")
            x = {
                "numeric": jnp.zeros((2, self.shape.numeric)),
                "categorical": jnp.zeros((2, len(self.shape.vocabularies)), jnp.int32),
            }
            found = jax.eval_shape(self.apply, params, x)
            if found.shape != (2, self.outputs):
                raise ValueError("shape")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError("these are no parameters of a model of interactions") from error
        return params

    def _sum(self, params: Params, x: Any) -> Any:
        y: Any = params["base"][None, :]
        if not params["terms"]:
            rows = len(x["categorical"])
            return jnp.broadcast_to(y, (rows, self.outputs))
        codes = {
            name: self._bins(int(name), column, x) for name, column in params["columns"].items()
        }
        for name, term in params["terms"].items():
            product: Any = None
            for column, table in zip(name.split("x"), term["tables"].values(), strict=True):
                values = table[codes[column]]
                if product is None:
                    product = values
                else:
                    product = flat(product[:, :, None] * values[:, None, :])
            y = y + matmul(product, term["weights"])
        return y

    def _bins_of(self, number: int, column: Params) -> int:
        """How many bins a column has. Raises ValueError if a code of it has none."""
        if number < self.shape.numeric:
            return len(column["edges"]) + 2
        bins = column["bins"]
        if len(bins) != self.shape.vocabularies[number - self.shape.numeric] or bins.min() < 0:
            raise ValueError("bins")
        return int(bins.max()) + 1

    def _bins(self, number: int, column: Params, x: Any) -> Any:
        if number < self.shape.numeric:
            return binned(x["numeric"][:, number], column["edges"])
        return column["bins"][x["categorical"][:, number - self.shape.numeric]]

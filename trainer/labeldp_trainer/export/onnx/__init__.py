"""A trained model as ONNX: encoder, representation and model as one graph, one function a layer."""

from labeldp_trainer.export.onnx.command import target

__all__ = ["target"]

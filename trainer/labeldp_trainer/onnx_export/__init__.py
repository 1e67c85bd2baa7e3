"""Trained models as ONNX: encoder, representation and model as one graph, one function a layer."""

"""Where signatures lie: known without the library that makes and checks them."""

from pathlib import Path


def signature_path(artifact: Path) -> Path:
    """Where a signature of Ed25519 lies by default: NAME.onnx.sig beside NAME.onnx."""
    return artifact.with_name(artifact.name + ".sig")


def bundle_path(artifact: Path) -> Path:
    """Where a bundle of P-256 lies by default: NAME.onnx.sigstore.json beside NAME.onnx."""
    return artifact.with_name(artifact.name + ".sigstore.json")

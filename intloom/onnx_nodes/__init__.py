"""Single ONNX operators in the project's own arithmetic, for the ONNX backend. Importing the files registers them."""

from intloom.onnx_nodes import linear, moves, products
from intloom.onnx_nodes.registry import Evaluation, evaluator

__all__ = ["Evaluation", "evaluator", "linear", "moves", "products"]

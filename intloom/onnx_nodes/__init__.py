"""Evaluation of single ONNX operators in the accelerator's arithmetic, for the ONNX backend. Imports register them."""

from intloom.onnx_nodes import linear, moves, products
from intloom.onnx_nodes.registry import EVALUATIONS, Evaluation

__all__ = ["EVALUATIONS", "Evaluation", "linear", "moves", "products"]

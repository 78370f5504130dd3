"""Accuracy of a model as float model, as quantized model and on the accelerator, on a labeled set of images."""

from intloom.evaluation.dataset import Task, load_dataset
from intloom.evaluation.evaluate import EvaluateOptions, Evaluation, evaluate

__all__ = ["EvaluateOptions", "Evaluation", "Task", "evaluate", "load_dataset"]

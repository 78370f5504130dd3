"""onnxruntime with the accelerator's session, for scripts that change one import.

>>> import intloom.onnxruntime as ort

`InferenceSession` and `get_available_providers` are Intloom's. All other names are those of onnxruntime.
"""

from typing import Any

import onnxruntime

from intloom.session import PROVIDERS
from intloom.session import Session as InferenceSession

__all__ = ["InferenceSession", "get_available_providers"]


def get_available_providers() -> list[str]:
    """The providers of a session: the accelerator, and the host's processor."""
    return list(PROVIDERS)


def __getattr__(name: str) -> Any:
    return getattr(onnxruntime, name)

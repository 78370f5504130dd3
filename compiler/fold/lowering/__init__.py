"""Operator lowerings, one operator or one family of operators a file. Every file of this folder is imported."""

from intloom.common.discovery import import_submodules

import_submodules(__name__)

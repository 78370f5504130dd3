"""Functions of a vector lane. Every file of this folder is imported and registers its function."""

from intloom.common.discovery import import_submodules

import_submodules(__name__)

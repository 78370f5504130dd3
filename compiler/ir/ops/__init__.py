"""The operators of the integer graph, one a file. Every file of this folder is imported and registers its class."""

from intloom.common.discovery import import_submodules

import_submodules(__name__)

"""The integer operations. Every file of this folder is imported and registers its node classes."""

from intloom.common.discovery import import_submodules

import_submodules(__name__)

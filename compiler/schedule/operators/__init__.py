"""How each integer operation becomes stages. Every file of this folder is imported and registers its schedules."""

from intloom.common.discovery import import_submodules

import_submodules(__name__)

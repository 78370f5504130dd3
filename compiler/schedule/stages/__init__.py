"""How each operator becomes stages. Every file of this folder is imported and registers its schedules."""

from intloom.common.discovery import import_submodules
from intloom.compiler.ir.node import operators
from intloom.compiler.schedule.stages.stage_list import schedule_of

import_submodules(__name__)

# An operator without a schedule is an error at once, not in the first network that has it.
for _kind in operators().values():
    schedule_of(_kind)

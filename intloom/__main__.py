"""`python -m intloom` is the command line."""

import sys

from intloom.cli import main

sys.exit(main())

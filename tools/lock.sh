#!/bin/sh
# Resolve all dependencies in the virtual environment $1 and write requirements.lock with versions and hashes.
set -eu
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'hatchling>=1.27,<2' 'editables>=0.5'
"$1/bin/python" -m tools.lock "$1"

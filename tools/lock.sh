#!/bin/sh
# Resolve all dependencies in the virtual environment $1 and write requirements.lock from what came out.
set -eu
python=$1/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'hatchling>=1.27,<2' 'editables>=0.5'
{
    echo "# Exact versions that \`make\` installs; written by \`make lock\` with $("$python" --version)."
    "$python" -m pip freeze --exclude-editable
} > requirements.lock.new
mv requirements.lock.new requirements.lock

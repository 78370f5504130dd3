"""Results of a regression on disk: one JSON line per case, appended at once, so that a stopped run can continue."""

import json
import os
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path

from intloom.common.errors import DiskError
from intloom.sim.regress.case import CaseResult, Outcome
from intloom.sim.regress.version import project_version

RESULTS = "results.jsonl"


class Store:
    """The results file of one regression folder.

    Parameters
    ----------
    folder
        Made when it is not there.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"cannot make the results folder {folder}: {error.strerror}") from None
        self._path = folder / RESULTS

    def passed(self) -> dict[str, CaseResult]:
        """Cases that have passed with the present sources, by key; a line that a crash has truncated is skipped."""
        if not self._path.exists():
            return {}
        results = {}
        for line in self._path.read_text(encoding="utf-8").splitlines():
            result = _parse(line)
            if result is not None:
                results[result.key] = result
        version = project_version()
        # The last line of a key wins: a case that failed after it had passed runs again.
        return {key: r for key, r in results.items() if r.outcome is Outcome.PASS and r.version == version}

    def add(self, result: CaseResult) -> None:
        """Append a result; it is on disk when this returns."""
        line = json.dumps(asdict(result), sort_keys=True) + "\n"
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                # A case may take minutes, so its result must survive a crash of the machine.
                os.fsync(file.fileno())
        except OSError as error:
            raise DiskError(f"cannot write {self._path}: {error.strerror}") from None

    def forget(self, keys: Container[str]) -> None:
        """Delete the results of these cases."""
        kept = [r for r in self.passed().values() if r.key not in keys]
        # The file is written again, since lines can only be appended.
        self._path.unlink(missing_ok=True)
        for result in kept:
            self.add(result)


def _parse(line: str) -> CaseResult | None:
    try:
        values = json.loads(line)
        return CaseResult(**{**values, "outcome": Outcome(values["outcome"])})
    except (json.JSONDecodeError, TypeError, KeyError, ValueError):
        return None

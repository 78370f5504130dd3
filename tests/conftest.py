"""What all tests share: replayable random seeds, hypothesis settings, quick tests before slow ones."""

from __future__ import annotations

import os
import random
import zlib

import pytest
from hypothesis import HealthCheck, settings

SEED_VARIABLE = "INTLOOM_SEED"

# No deadline: machines are shared and loaded, and time is not what a property is about.
settings.register_profile("intloom", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("intloom")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's seed once; worker processes inherit it."""
    os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(1 << 32)))


def pytest_report_header() -> str:
    """Say how to run the same random cases again."""
    return f"replay random cases with {SEED_VARIABLE}={os.environ[SEED_VARIABLE]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first: a plain mistake shows in seconds."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed of the test's own, the same in every run with the same `INTLOOM_SEED`; shown when the test fails."""
    value = zlib.crc32(f"{os.environ[SEED_VARIABLE]} {request.node.nodeid}".encode())
    print(f"{SEED_VARIABLE}={os.environ[SEED_VARIABLE]} gives this test seed {value}")
    return value


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Python's random numbers from `seed`."""
    return random.Random(seed)

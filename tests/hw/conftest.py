"""Benches of the components watch the registers that they are evidence for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.hw.top_bits_seen import check, evidence


@pytest.fixture
def seed(request: pytest.FixtureRequest, seed: int) -> int:
    """A constant for tests that are evidence, in which bits must rise in every run; else the run's."""
    nodeid: str = request.node.nodeid
    return zlib.crc32(nodeid.encode()) if nodeid in evidence() else seed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test in which a register's highest bit stays 0 although `counting_registers.yaml` says that it rises."""
    with check(item.nodeid):
        return (yield)

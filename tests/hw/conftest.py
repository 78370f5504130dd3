"""Benches of the components watch the registers that they are evidence for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hw.top_bits_seen import check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test in which a register's highest bit stays 0 although `counting_registers.yaml` says that it rises."""
    with check(item.nodeid):
        return (yield)

"""Connection to a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from intloom.common.errors import EnvironmentFault, UsageError
from intloom.common.extras import require_extra

_CONNECT_SECONDS = 30


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the cluster whose scheduler is at `address`, which is the current client in the block."""
    require_extra("dask", "distributed")
    from distributed import Client

    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except ValueError as error:
        raise UsageError(f"--dask must be an address like tcp://host:8786, not {address!r}: {error}") from None
    except (OSError, TimeoutError) as error:
        raise EnvironmentFault(
            f"cannot reach the Dask scheduler at {address}: {error}; start one with `dask scheduler`"
        ) from None
    with client, client.as_current():
        yield client

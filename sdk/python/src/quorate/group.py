"""Connecting by API key: the API issues the handle and its refreshed ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from quorate import limits
from quorate.client import Client, connect
from quorate.handle import Handle
from quorate.partitioned import PartitionedClient, connect_partitioned


async def connect_group(
    api_url: str,
    api_key: str,
    group_id: str,
    *,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    read_only: bool = False,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> Client:
    """Connect to a group by its id. Raises ApiError when the API refuses, ConnectFailed as `connect` does."""
    handle = _handles(api_url, api_key, group_id)
    return await connect(
        await handle(),
        refresh=handle,
        timeout=timeout,
        answer_wait=answer_wait,
        read_only=read_only,
        tracer=tracer,
        pace=pace,
        spread_reads=spread_reads,
    )


async def connect_partitioned_group(
    api_url: str,
    api_key: str,
    group_id: str,
    *,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> PartitionedClient:
    """Connect to all partitions of a group by its id, and follow it when partitions are added."""
    handle = _handles(api_url, api_key, group_id)
    return await connect_partitioned(
        await handle(),
        refresh=handle,
        timeout=timeout,
        answer_wait=answer_wait,
        tracer=tracer,
        pace=pace,
        spread_reads=spread_reads,
    )


def _handles(api_url: str, api_key: str, group_id: str) -> Callable[[], Awaitable[Handle]]:
    async def handle() -> Handle:
        # Imported here so that a caller with a handle needs no HTTP client.
        from quorate.control import Control

        async with Control(api_url, api_key) as control:
            return await control.handle(group_id)

    return handle

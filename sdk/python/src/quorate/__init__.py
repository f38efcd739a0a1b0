"""Quorate: ordered, durable logs as a service.

    client = await quorate.connect(handle)      # or connect_group(api_url, api_key, group_id)
    offset = await client.append(b"hello")
    async for entry in client.tail(0): ...

    client = await quorate.connect_partitioned_group(api_url, api_key, group_id)    # a group with partitions
    placed = await client.append(b"paid", key="order-17")

`quorate.sync` is the same without async. `quorate.control` is the client of the API.
"""

from quorate.appender import Appended
from quorate.client import Client, GroupStatus, ReadResult, connect
from quorate.codes import Code
from quorate.cursor import Cursor
from quorate.errors import (
    AppendError,
    AppendRefused,
    AppendUnknown,
    CodedError,
    ConditionFailed,
    ConnectFailed,
    CursorError,
    Fenced,
    HandleError,
    QuorateError,
    ReadRefused,
    Trimmed,
)
from quorate.group import connect_group, connect_partitioned_group
from quorate.handle import Endpoint, Guarantee, Handle, Limits, Partitions, Tls
from quorate.keys import partition_of
from quorate.knock import knock
from quorate.merged import MergedTail, PartitionEntry
from quorate.partitioned import PartitionedClient, connect_partitioned
from quorate.reader import Tail
from quorate.rerouting import Placed
from quorate.tail import Entry
from quorate.version import VERSION as __version__

__all__ = [
    "AppendError",
    "AppendRefused",
    "AppendUnknown",
    "Appended",
    "Client",
    "Code",
    "CodedError",
    "ConditionFailed",
    "ConnectFailed",
    "Cursor",
    "CursorError",
    "Endpoint",
    "Entry",
    "Fenced",
    "GroupStatus",
    "Guarantee",
    "Handle",
    "HandleError",
    "Limits",
    "MergedTail",
    "PartitionEntry",
    "PartitionedClient",
    "Partitions",
    "Placed",
    "QuorateError",
    "ReadRefused",
    "ReadResult",
    "Tail",
    "Tls",
    "Trimmed",
    "__version__",
    "connect",
    "connect_group",
    "connect_partitioned",
    "connect_partitioned_group",
    "knock",
    "partition_of",
]

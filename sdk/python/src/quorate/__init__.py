"""Quorate: ordered, durable logs as a service.

    client = await quorate.connect(handle)      # or connect_group(api_url, api_key, group_id)
    offset = await client.append(b"hello")
    async for entry in client.tail(0): ...

`quorate.sync` is the same without async. `quorate.control` is the client of the API.
"""

from quorate.appender import Appended
from quorate.client import Client, GroupStatus, ReadResult, connect
from quorate.codes import Code
from quorate.errors import (
    AppendError,
    AppendRefused,
    AppendUnknown,
    CodedError,
    ConditionFailed,
    ConnectFailed,
    Fenced,
    HandleError,
    QuorateError,
    ReadRefused,
    Trimmed,
)
from quorate.group import connect_group
from quorate.handle import Endpoint, Guarantee, Handle, Limits, Tls
from quorate.knock import knock
from quorate.reader import Tail
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
    "Endpoint",
    "Entry",
    "Fenced",
    "GroupStatus",
    "Guarantee",
    "Handle",
    "HandleError",
    "Limits",
    "QuorateError",
    "ReadRefused",
    "ReadResult",
    "Tail",
    "Tls",
    "Trimmed",
    "__version__",
    "connect",
    "connect_group",
    "knock",
]

"""A whole Quorate on one machine: its processes, their state folder, their order.

`Stack` is the door for programs (the demo, the end-to-end tests); `quorate-local` and
`make up` are the door for people. docs/internals/processes.md is the contract kept here.
"""

from quorate_local.options import ServerResources, StackOptions
from quorate_local.process import ProcessFailed
from quorate_local.stack import AlreadyRunning, Stack

__all__ = ["AlreadyRunning", "ProcessFailed", "ServerResources", "Stack", "StackOptions"]

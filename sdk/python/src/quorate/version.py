"""The package's version and the name it greets servers with."""

VERSION = "0.1.0"
CLIENT_NAME = f"quorate-python/{VERSION}"

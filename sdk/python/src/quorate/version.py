"""The package's version, and the client's name in handshakes."""

VERSION = "0.1.0"
CLIENT_NAME = f"quorate-python/{VERSION}"

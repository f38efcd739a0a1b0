"""The identity providers of a service, read from a file of its operators (docs/operating/identity-providers.md)."""

import re
import tomllib
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from quorate_api import limits
from quorate_api.openid.provider import Provider
from quorate_api.settings import LOOPBACK, ConfigurationError, read_private

ID = re.compile(r"[a-z][a-z0-9-]{0,31}")
VARIABLE = "QUORATE_IDENTITY_PROVIDERS_FILE"

Providers = dict[str, Provider]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=limits.PROVIDER_NAME_LENGTH_MAX)]
    issuer: str
    client_id: Annotated[str, Field(min_length=1)]
    client_secret_file: Annotated[str, Field(min_length=1)]

    @field_validator("issuer")
    @classmethod
    def _https(cls, value: str) -> str:
        parts = urlsplit(value)
        allowed = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        if not allowed or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must begin with https://, without ? and #")
        return value


def read(path: Path | None) -> Providers:
    """Empty without a file. Raises `ConfigurationError`."""
    if path is None:
        return {}
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{VARIABLE} names {path}, which cannot be read: {error}.") from None
    if len(found) > limits.PROVIDERS_MAX:
        raise ConfigurationError(f"{VARIABLE}: {path} has more than {limits.PROVIDERS_MAX} providers.")
    return {name: _provider(path, name, entry) for name, entry in found.items()}


def _provider(path: Path, name: str, entry: object) -> Provider:
    if not ID.fullmatch(name):
        raise ConfigurationError(f"{VARIABLE}: [{name}] in {path} must be small letters, digits and hyphens.")
    try:
        read = _Entry.model_validate(entry)
    except ValidationError as error:
        lines = [
            f"{VARIABLE}: [{name}] in {path}: {'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}."
            for each in error.errors()
        ]
        raise ConfigurationError("\n".join(lines)) from None
    secret = read_private(f"client_secret_file of [{name}]", path.parent / read.client_secret_file)
    return Provider(name, read.name, read.issuer, read.client_id, secret)

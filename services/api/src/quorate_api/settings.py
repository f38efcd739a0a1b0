"""Configuration from the environment (docs/internals/processes.md), checked before anything starts."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AliasChoices, Field, HttpUrl, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from quorate_api import limits
from quorate_api.networks import parse_networks

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ConfigurationError(ValueError):
    """The environment is not valid. The text is for people. Exit code 2."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="QUORATE_", extra="ignore", frozen=True)

    database_url: str = Field(validation_alias=AliasChoices("database_url", "DATABASE_URL"))
    owner_database_url: str | None = None
    redis_url: str | None = Field(None, validation_alias=AliasChoices("redis_url", "REDIS_URL"))
    listen: str = "127.0.0.1:8080"
    # Address of operators' calls; without it they are where customers' calls are.
    operator_listen: str | None = None
    public_url: str = ""
    # URLs of all coordinators, with commas between.
    coordinator_url: Annotated[str, NoDecode] = "http://127.0.0.1:7600"
    coordinator_ca_file: Path | None = None
    coordinator_token_file: Path | None = None
    token_signing_key_file: Path | None = None
    secret_file: Path | None = None
    operator_token_file: Path | None = None
    prober_token_file: Path | None = None
    portal_dir: Path | None = None
    migrations_dir: Path | None = None
    # Folder for usage windows of days that are removed from the database. None: they are not kept.
    usage_archive_dir: Path | None = None
    # Whether people may log in over http at another address than this machine's. Their cookies are then visible.
    allow_http: bool = False
    log_format: str = "json"
    otlp_endpoint: str | None = Field(
        None, validation_alias=AliasChoices("otlp_endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT")
    )
    start_wait_s: float = Field(limits.START_WAIT_S, ge=0, le=600)
    worker_name: str | None = None
    # argon2id's memory, lower only on small machines. The default is RFC 9106's second choice.
    password_memory_kib: int = Field(65_536, ge=8_192, le=1_048_576)
    # Whether replica servers accept clients without TLS too (their --allow-plaintext). Handles carry it.
    plaintext_allowed: bool = False
    signups_per_address: str = limits.SIGNUPS_PER_ADDRESS
    # Number of proxies before the API, each of which appends to X-Forwarded-For. 0: the header is ignored.
    trusted_proxies: int = Field(0, ge=0, le=limits.TRUSTED_PROXIES_MAX)
    # The seller as documents name it. Lines of the address are separated by semicolons.
    seller_name: str = Field("", max_length=limits.NAME_LENGTH_MAX)
    seller_address: str = Field("", max_length=limits.SELLER_ADDRESS_LENGTH_MAX)
    seller_tax_id: str = Field("", max_length=limits.NAME_LENGTH_MAX)
    tax: Literal["none", "flat"] = "none"
    tax_rate_ppm: int | None = Field(None, ge=0, le=1_000_000)
    tax_label: str | None = Field(None, min_length=1, max_length=limits.NAME_LENGTH_MAX)

    # Without mail, addresses count as verified, nobody is invited, and no password is reset.
    mail: Literal["none", "folder", "smtp"] = "none"
    mail_dir: Path | None = None
    mail_from: str = Field("Quorate <noreply@localhost>", max_length=limits.MAIL_ADDRESS_LENGTH_MAX)
    smtp_url: str | None = None
    smtp_user: str | None = None
    smtp_password_file: Path | None = None

    # A group of Quorate's own for copies of audit logs, and a file with an API key for it (docs/operating/audit.md).
    audit_group_id: UUID | None = None
    audit_key_file: Path | None = None
    audit_api_url: str | None = None  # another service, if that one keeps them

    # TOML: the identity providers with which people may log in (docs/operating/identity-providers.md).
    identity_providers_file: Path | None = None

    # Networks to which webhooks may be sent beside the public internet, there over http too; commas between.
    webhook_networks: str = ""

    payment_provider: Literal["manual", "stripe"] = "manual"
    payment_terms_days: int = Field(limits.PAYMENT_TERMS_DAYS, ge=0, le=limits.PAYMENT_TERMS_DAYS_MAX)
    # How to pay, for customers. Lines are separated by semicolons.
    payment_instructions: str = Field("", max_length=limits.PAYMENT_INSTRUCTIONS_LENGTH_MAX)
    stripe_key_file: Path | None = None
    stripe_webhook_secret_file: Path | None = None
    stripe_url: str = "https://api.stripe.com"

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _postgres(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str | None) -> str | None:
        if value and not value.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must begin with redis://, rediss:// or unix://")
        return value or None

    @field_validator("coordinator_url")
    @classmethod
    def _urls(cls, value: str) -> str:
        return ",".join(cls._url(url.strip()) for url in value.split(","))

    @field_validator("stripe_url")
    @classmethod
    def _url(cls, value: str) -> str:
        HttpUrl(value)
        return value.rstrip("/")

    @field_validator("webhook_networks")
    @classmethod
    def _networks(cls, value: str) -> str:
        try:
            parse_networks(value)
        except ValueError as error:
            raise ValueError(f"must be networks, as in 10.1.0.0/16,10.2.0.0/16: {error}") from None
        return value

    @field_validator("listen", "operator_listen")
    @classmethod
    def _listen(cls, value: str | None) -> str | None:
        if value is None:
            return None
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise ValueError("must be host:port, as in 127.0.0.1:8080")
        return value

    @model_validator(mode="after")
    def _files(self) -> Self:
        for name in (
            "coordinator_token_file",
            "token_signing_key_file",
            "secret_file",
            "operator_token_file",
            "prober_token_file",
        ):
            path = getattr(self, name)
            if path is not None and not path.is_file():
                raise ValueError(
                    f"QUORATE_{name.upper()} names {path}, which is not a file: `quorate-api keys-init` creates it"
                )
        return self

    @model_validator(mode="after")
    def _authority(self) -> Self:
        path = self.coordinator_ca_file
        if path is not None and not path.is_file():
            raise ValueError(
                f"QUORATE_COORDINATOR_CA_FILE names {path}, which is not a file: a coordinator writes ca.pem to its"
                " data folder at its first start"
            )
        if path is None and "https:" in self.coordinator_url:
            raise ValueError(
                "QUORATE_COORDINATOR_URL with https needs QUORATE_COORDINATOR_CA_FILE: ca.pem of a coordinator's folder"
            )
        return self

    @model_validator(mode="after")
    def _https(self) -> Self:
        host = urlsplit(self.origin).hostname or ""
        if not self.secure and not self.allow_http and host not in LOOPBACK:
            raise ValueError(
                f"QUORATE_PUBLIC_URL is {self.origin}: cookies of people who log in would be sent in the clear. Give "
                "the https:// address under which customers reach the API, or set QUORATE_ALLOW_HTTP=true for a "
                "private network"
            )
        return self

    @model_validator(mode="after")
    def _mail(self) -> Self:
        if self.mail == "folder" and self.mail_dir is None:
            raise ValueError("QUORATE_MAIL is folder, which needs QUORATE_MAIL_DIR: where mail is written to")
        if self.mail == "smtp" and not (self.smtp_url or "").startswith(("smtp://", "smtps://")):
            raise ValueError(
                "QUORATE_MAIL is smtp, which needs QUORATE_SMTP_URL: smtps://host:465 (TLS from the start) or "
                "smtp://host:587 (STARTTLS)"
            )
        if (self.smtp_user is None) != (self.smtp_password_file is None):
            raise ValueError("QUORATE_SMTP_USER and QUORATE_SMTP_PASSWORD_FILE go together: set both, or neither")
        return self

    @model_validator(mode="after")
    def _taxes(self) -> Self:
        given = {"QUORATE_TAX_RATE_PPM": self.tax_rate_ppm, "QUORATE_TAX_LABEL": self.tax_label}
        for name, value in given.items():
            if self.tax == "flat" and value is None:
                raise ValueError(f"QUORATE_TAX is flat, which needs {name}, as in 190000 with the label VAT 19 %")
            if self.tax == "none" and value is not None:
                raise ValueError(f"{name} is set, and QUORATE_TAX is none: set QUORATE_TAX=flat, or unset {name}")
        return self

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def origin(self) -> str:
        """The API's public address, without a slash at the end."""
        return (self.public_url or f"http://{self.listen}").rstrip("/")

    @property
    def secure(self) -> bool:
        """Whether the public address is https, so that cookies can require it."""
        return self.origin.startswith("https://")

    @property
    def sends_mail(self) -> bool:
        return self.mail != "none"

    def check_archive(self) -> None:
        """For the worker, which alone writes to the archive."""
        folder = self.usage_archive_dir
        if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ConfigurationError(
                f"QUORATE_USAGE_ARCHIVE_DIR names {folder}, which is no folder that the worker may write to."
            )

    def coordinator_urls(self) -> list[str]:
        return self.coordinator_url.split(",")

    def coordinator_token(self) -> str:
        return _read("QUORATE_COORDINATOR_TOKEN_FILE", self.coordinator_token_file)

    def operator_tokens(self) -> str | None:
        """One token a line. None: this API serves no operators."""
        return None if self.operator_token_file is None else self.operator_token_file.read_text()

    def prober_tokens(self) -> str | None:
        """One token a line. None: this API serves no probers."""
        return None if self.prober_token_file is None else self.prober_token_file.read_text()

    def smtp_password(self) -> str | None:
        if self.smtp_password_file is None:
            return None
        return _read("QUORATE_SMTP_PASSWORD_FILE", self.smtp_password_file)

    def stripe_key(self) -> str:
        return _of_stripe("QUORATE_STRIPE_KEY_FILE", self.stripe_key_file, ("sk_", "rk_"))

    def stripe_webhook_secret(self) -> str:
        return _of_stripe("QUORATE_STRIPE_WEBHOOK_SECRET_FILE", self.stripe_webhook_secret_file, ("whsec_",))

    def signing_key_pem(self) -> str:
        return _read("QUORATE_TOKEN_SIGNING_KEY_FILE", self.token_signing_key_file)

    def secrets(self) -> list[bytes]:
        """One a line; the first is the present one."""
        try:
            secrets = [bytes.fromhex(line) for line in _read("QUORATE_SECRET_FILE", self.secret_file).split()]
        except ValueError as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError("QUORATE_SECRET_FILE must hold hexadecimal digits.") from None
        if not secrets or any(len(secret) < 32 for secret in secrets):
            raise ConfigurationError("QUORATE_SECRET_FILE must hold at least 32 bytes, as 64 hexadecimal digits.")
        return secrets


def _read(variable: str, path: Path | None) -> str:
    if path is None:
        raise ConfigurationError(f"{variable} is not set. `quorate-api keys-init --dir DIR` creates keys and secret.")
    return path.read_text().strip()


def _of_stripe(variable: str, path: Path | None, prefixes: tuple[str, ...]) -> str:
    if path is None:
        raise ConfigurationError(f"QUORATE_PAYMENT_PROVIDER is stripe, which needs {variable}.")
    text = read_private(variable, path)
    if not text.startswith(prefixes):
        begins = " or ".join(f"`{prefix}`" for prefix in prefixes)
        raise ConfigurationError(f"{variable} must hold one line that begins with {begins}, as Stripe shows it.")
    return text


def read_private(variable: str, path: Path) -> str:
    """A secret of another service: one line, in a file that not everybody may use. Its text is in no message."""
    try:
        if path.stat().st_mode & 0o007:
            raise ConfigurationError(f"{variable}: everybody on this machine may use {path}. Run: chmod o= {path}")
        text = path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"{variable} names {path}, which cannot be read: {error.strerror}.") from None
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigurationError(f"{variable} names {path}, which must hold one line without blanks.")
    return text


def load() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        lines = [f"{_variable(item['loc'])}: {item['msg'].removeprefix('Value error, ')}." for item in error.errors()]
        raise ConfigurationError("\n".join(lines)) from None


def _variable(location: tuple[int | str, ...]) -> str:
    """A setting's name in the environment."""
    if not location:
        return "environment"
    name = str(location[0]).upper()
    plain = {"DATABASE_URL", "REDIS_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    return name if name in plain else f"QUORATE_{name.removeprefix('QUORATE_')}"

"""The provider by its name in the setting `QUORATE_PAYMENT_PROVIDER`."""

from quorate_api.checkout.port import Manual, Provider
from quorate_api.checkout.stripe_pages import StripePages
from quorate_api.settings import Settings


def configured(settings: Settings) -> Provider:
    """For the API, which alone talks to the provider. Raises `ConfigurationError`."""
    if settings.payment_provider == "stripe":
        return StripePages(settings.stripe_key(), settings.stripe_webhook_secret(), settings.stripe_url)
    return Manual(tuple(line.strip() for line in settings.payment_instructions.split(";") if line.strip()))

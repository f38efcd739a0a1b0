"""TLS of a connection: the authority that the handle names, and the meaning of failed handshakes."""

from __future__ import annotations

import ssl
from functools import lru_cache

from quorate.codes import Code
from quorate.errors import Failure


@lru_cache(maxsize=16)
def client_context(ca_pem: str) -> ssl.SSLContext:
    """Trusts only this authority's certificates, for the dialled host. Raises ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the host
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(cadata=ca_pem)
    except ssl.SSLError as problem:
        raise ValueError(f"its tls.ca_pem is not a certificate authority: {problem}") from None
    return context


def failure_of(problem: OSError | TimeoutError, address: str) -> Failure:
    """The failure of a connection to `address`, with the caller's next step."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return Failure(Code.SERVER_UNTRUSTED, f"{address}: {_untrusted(problem)}")
    if isinstance(problem, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(problem):
        return Failure(Code.NO_CONNECTION, f"{address}: what answers there does not speak TLS")
    return Failure(Code.NO_CONNECTION, f"{address}: {str(problem) or 'no answer'}")


def _untrusted(problem: ssl.SSLCertVerificationError) -> str:
    # Numbers of OpenSSL's X509_V_ERR_*, because the texts differ between versions.
    match problem.verify_code:
        case 62 | 64:  # host name, IP address
            return f"its certificate is for another host ({problem.verify_message})"
        case 10:
            return "its certificate has expired, or this machine's clock is ahead"
        case 9:
            return "its certificate is not good yet: this machine's clock is behind"
        case 7 | 18 | 19 | 20 | 21:
            return "its certificate is not from the authority that the handle names"
        case _:
            return f"its certificate is not acceptable: {problem.verify_message}"

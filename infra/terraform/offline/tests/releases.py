"""An https server on loopback with releases, and a machine's scripts that install from it."""

from __future__ import annotations

import http.server
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quorate_offline import mirror

MODULES = mirror.TERRAFORM / "modules"
SCRIPTS = sorted(MODULES.glob("*/files/*.sh"))
INSTALL_TIMEOUT_S = 60

Ended = tuple[int, str]  # exit code and output


@dataclass
class Releases:
    """An https server on loopback with programs to install."""

    address: str
    folder: Path
    authority: Path

    def install(
        self,
        script: str,
        target: Path,
        name: str,
        checksum: str,
        *more: str,
        address: str | None = None,
        path: str = "",
    ) -> Ended:
        """Runs the machine's `script` beside the scripts that it calls, as on the machine. `path` comes first."""
        release = target.parent / "release"
        release.write_text(f"{address or self.address}/{name}\n{checksum}\n")
        scripts = target.parent / "scripts"
        scripts.mkdir(exist_ok=True)
        for source in SCRIPTS:
            shutil.copy(source, scripts / source.stem)
        env = os.environ | {"CURL_CA_BUNDLE": str(self.authority), "INSTALL_RETRIES": "0"}
        env["PATH"] = f"{path}:{env['PATH']}" if path else env["PATH"]
        done = subprocess.run(
            [str(scripts / script), str(release), str(target), *more],
            env=env,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@contextmanager
def serve(folder: Path) -> Iterator[Releases]:
    """Serves the files of `folder`."""
    keys = Path(tempfile.mkdtemp(prefix="quorate-releases-"))
    certificate = _certificate(keys)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, keys / "key.pem")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Releases(f"https://127.0.0.1:{server.server_port}", folder, certificate)
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(keys)


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "releases")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(pem)
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "certificate.pem"

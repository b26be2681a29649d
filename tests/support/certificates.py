"""Certificates that sign themselves, for servers on this machine."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

from support.terminal import need


def self_signed(path: Path, *names: str, days: int = 1) -> Path:
    """A file with a certificate for these names or addresses, and its key."""
    need("openssl")
    kinds = ("IP" if name[0].isdigit() or ":" in name else "DNS" for name in names)
    alternatives = ",".join(f"{kind}:{name}" for kind, name in zip(kinds, names, strict=True))
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={alternatives}", "-days", str(days)),
            *("-keyout", f"{path}.key", "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.key").read_text())
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    """The settings of a server that shows the certificate of a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context

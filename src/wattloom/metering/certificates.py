"""Whose certificates are trusted when a meter speaks TLS.

Owns what the setting `certificate` means. Knows no protocol above.
"""

import ssl
from contextlib import suppress


def trusting(certificate: str) -> ssl.SSLContext:
    """Empty: what the system trusts; `any`: everybody; else what stands in that file."""
    context = ssl.create_default_context(cafile=certificate if certificate not in ("", "any") else None)
    if certificate == "any":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif certificate:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def certificates(path: str) -> list[bytes]:
    """Those in a file, in their binary form."""
    with open(path, encoding="ascii", errors="replace") as file:
        blocks = file.read().split("-----BEGIN CERTIFICATE-----")[1:]
    found: list[bytes] = []
    for block in blocks:
        with suppress(ValueError):
            text = block.partition("-----END CERTIFICATE-----")[0]
            found.append(ssl.PEM_cert_to_DER_cert(f"-----BEGIN CERTIFICATE-----{text}-----END CERTIFICATE-----"))
    return found

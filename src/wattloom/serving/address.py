"""Where a server listens: `HOST:PORT`, and whether others than this machine can come there.

Owns the reading of addresses and the sockets. Who may ask is `access`'s rule.
"""

import errno
import socket
from ipaddress import ip_address
from typing import Final

import msgspec

from wattloom.errors import InputError

BACKLOG: Final = 128
NOT_HERE: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""A kind of address that this machine does not have, as IPv6 where it is switched off."""
EXAMPLE: Final = "127.0.0.1:9909"


class Address(msgspec.Struct, frozen=True):
    """A host and a port. No host: every address of this machine, of IPv4 and of IPv6. Port 0: any that is free."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs of this machine can come here."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host or '0.0.0.0'}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether what is sent there never leaves this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_address(text: str, field: str = "listen") -> Address:
    """`HOST:PORT`, `[HOST]:PORT` or `:PORT`. `field` is what a wrong one is blamed on."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise InputError(field, f"must be HOST:PORT, as in {EXAMPLE}, not {text!r}")
    return Address(host.strip("[]"), int(port))


def listen(address: Address, field: str = "listen") -> list[socket.socket]:
    """Sockets at which callers are waited for, IPv4's first: where any port will do, each kind has its own."""
    try:
        found = socket.getaddrinfo(address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _open({(family, where) for family, _, _, _, where in found})
    except (OSError, ValueError) as problem:  # a name may be none that can be asked for
        raise _cannot_listen(field, address, problem) from None


def _open(places: set[tuple[int, tuple[object, ...]]]) -> list[socket.socket]:
    made: list[socket.socket] = []
    missing: OSError | None = None
    for family, where in sorted(places, key=lambda each: (each[0], str(each[1]))):
        try:
            made.append(_listening(family, where))
        except OSError as problem:
            if problem.errno not in NOT_HERE:
                for each in made:
                    each.close()
                raise
            missing = problem
    if missing is not None and not made:
        raise missing
    return made


def _listening(family: int, where: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(where)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _cannot_listen(option: str, address: Address, problem: Exception) -> InputError:
    """In words: the system's own say nothing of the option that helps."""
    if isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE:
        taken = f"port {address.port} is taken by another program: --{option} HOST:PORT takes another one"
        return InputError(option, taken)
    return InputError(option, f"cannot listen at {address}: {getattr(problem, 'strerror', None) or problem}")

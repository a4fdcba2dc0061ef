"""One question of SNMP (version 2c): GET of one object, which is all that a power strip is asked.

Owns the bytes of the question and of the answer. Knows nothing of watts.
"""

import socket
from contextlib import closing
from time import monotonic

from wattloom.metering.source import SourceProblem

INTEGER, OCTETS, NULL, OBJECT, SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
GET, RESPONSE = 0xA0, 0xA2
NUMBERS = (INTEGER, 0x41, 0x42, 0x43, 0x46)
"""INTEGER, Counter32, Gauge32, TimeTicks, Counter64."""
ABSENT = {0x80: "no such object", 0x81: "no such instance", 0x82: "nothing beyond"}
RESEND_S = 1.0
"""A datagram may be lost."""


def get_number(host: str, port: int, community: str, oid: str, number: int, timeout_s: float) -> float:
    """The object's value. `number`: of the question, so that an old answer is not taken for this one's."""
    question = request(community, oid, number)
    where = f"{host}:{port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with closing(socket.socket(family, kind)) as sock:
            sock.connect(address)
            return value(_answer(sock, question, number, timeout_s), where)
    except TimeoutError as problem:
        raise SourceProblem(
            f"no SNMP answer from {where} within {timeout_s:g} s: is SNMP on there, and is pdu.community right?"
        ) from problem
    except ConnectionRefusedError as problem:
        raise SourceProblem(f"nobody speaks SNMP at {where}") from problem
    except OSError as problem:
        raise SourceProblem(f"{where} cannot be reached: {problem.strerror}") from problem
    except (IndexError, ValueError, UnicodeDecodeError) as problem:
        raise SourceProblem(f"{where} answers with something that is not SNMP") from problem


def _answer(sock: socket.socket, question: bytes, number: int, timeout_s: float) -> bytes:
    end, again = monotonic() + timeout_s, 0.0
    while (left := end - monotonic()) > 0.0:
        if monotonic() >= again:
            sock.send(question)
            again = monotonic() + RESEND_S
        sock.settimeout(min(left, RESEND_S))
        try:
            found = sock.recv(65535)
        except TimeoutError:
            continue
        if request_number(found) == number:
            return found
    raise TimeoutError


# -- the bytes ---------------------------------------------------------------------------------------------------------


def request(community: str, oid: str, number: int) -> bytes:
    binding = _item(SEQUENCE, _item(OBJECT, encode_oid(oid)) + _item(NULL, b""))
    body = _integer(number) + _integer(0) + _integer(0) + _item(SEQUENCE, binding)
    return _item(SEQUENCE, _integer(1) + _item(OCTETS, community.encode()) + _item(GET, body))


def encode_oid(oid: str) -> bytes:
    """`1.3.6.1.2`: the first two share a byte, the others have seven bits in each."""
    first, second, *rest = (int(part) for part in oid.strip(".").split("."))
    found = bytearray()
    for part in (first * 40 + second, *rest):
        septets = [part & 0x7F]
        while part := part >> 7:
            septets.append(part & 0x7F | 0x80)
        found += bytes(reversed(septets))
    return bytes(found)


def request_number(answer: bytes) -> int:
    return int.from_bytes(_parts(_pdu(answer)[1])[0][1], signed=True)


def value(answer: bytes, where: str) -> float:
    """The number in an answer."""
    kind, body = _pdu(answer)
    _, status, _, bindings = _parts(body)
    if kind != RESPONSE:
        raise ValueError("not a response")
    if int.from_bytes(status[1]):
        raise SourceProblem(f"{where} refuses the question (SNMP error {int.from_bytes(status[1])})")
    _, (tag, raw) = _parts(_parts(bindings[1])[0][1])
    if tag in NUMBERS:
        return float(int.from_bytes(raw, signed=tag == INTEGER))
    if tag == OCTETS:  # some strips write their figures as text
        return float(raw.decode().split()[0])
    raise SourceProblem(f"{where} has no number at pdu.path: {ABSENT.get(tag, f'a value of kind {tag}')}")


def _pdu(answer: bytes) -> tuple[int, bytes]:
    """Inside version and community."""
    (_, message), *_ = _parts(answer)
    return _parts(message)[2]


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """Items one after the other: kind and content."""
    found: list[tuple[int, bytes]] = []
    while data:
        size, at = data[1], 2
        if size & 0x80:
            at += size & 0x7F
            size = int.from_bytes(data[2:at])
        if at + size > len(data):
            raise ValueError("cut off")
        found.append((data[0], data[at : at + size]))
        data = data[at + size :]
    return found


def _item(kind: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((kind, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((kind, 0x80 | len(length))) + length + content


def _integer(number: int) -> bytes:
    return _item(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, signed=True))

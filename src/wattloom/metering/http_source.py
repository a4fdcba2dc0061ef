"""What all sources that answer over HTTP have together: an address, a connection, an end.

Owns when the connection is made: not before the first question, so that a meter that is not set up costs nothing.
"""

from typing import TYPE_CHECKING

from wattloom.metering.configured import in_clear, missing_address
from wattloom.metering.count import Limits
from wattloom.metering.source import SourceProblem

if TYPE_CHECKING:
    from wattloom.metering.web import Http

STALE_S = 30.0
GAP_S = 12.0
"""The longest time without a figure that power is integrated over."""


class HttpSource:
    """To be inherited: `ask` is what is left to do."""

    name = ""
    example = ""
    """An address, for the words about what is missing."""
    least_s = 1.0
    timeout_s = 2.0

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        password: str = "",
        token: str = "",
        certificate: str = "",
        signs_in: bool = False,
        clear_text: bool = False,
    ) -> None:
        """`signs_in`: it sends a password by itself; `clear_text`: also where others could read it."""
        self.url = url
        self._secret, self._clear_text = bool(user or token or signs_in), clear_text
        self._user, self._password, self._token, self._certificate = user, password, token, certificate
        self._http: Http | None = None

    def missing(self) -> str | None:
        problem = missing_address(self.name, self.url, self.example)
        return problem or in_clear(self.name, self.url, self._secret, self._clear_text)

    def close(self) -> None:
        self.forget()

    def forget(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            http.close()

    @property
    def http(self) -> "Http":
        if self._http is None:
            from wattloom.metering.web import Http  # with TLS it takes tens of milliseconds to load

            if (problem := in_clear(self.name, self.url, self._secret, self._clear_text)) is not None:
                raise SourceProblem(problem)
            self._http = Http(
                self.url,
                user=self._user,
                password=self._password,
                token=self._token,
                certificate=self._certificate,
                timeout_s=self.timeout_s,
            )
        return self._http


def limits(most_w: float, late_s: float = 2.0) -> Limits:
    """Of a source that is asked about once a second. `late_s`: how seldom it brings its own figures up to date."""
    return Limits(most_w, late_s=late_s, gap_s=GAP_S, still_s=STALE_S)

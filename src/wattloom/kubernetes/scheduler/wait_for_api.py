"""The first question to an API server: is anybody there?

Owns how long is waited for the answer, and what is said when none comes.
"""

import asyncio
import logging
from time import monotonic
from typing import Final

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import Forbidden, Unreachable
from wattloom.kubernetes.options import NoCluster

LOG: Final = logging.getLogger(__name__)


async def reach(api: Api, seconds: float) -> None:
    """One question, so that whoever gave a wrong address is told (NoCluster). A server that comes up is waited for."""
    until = monotonic() + seconds
    said = ""
    while True:
        try:
            async with asyncio.timeout(max(0.1, until - monotonic())):
                await api.send("GET", "/version")
            return
        except Forbidden:
            return
        except (Unreachable, TimeoutError) as error:
            problem = error.message if isinstance(error, Unreachable) else "no answer in time"
        if monotonic() > until:
            raise NoCluster(f"no cluster can be reached at {api.target.server}: {problem}")
        level = logging.DEBUG if problem == said else logging.WARNING
        LOG.log(level, "the API server at %s does not answer: %s", api.target.server, problem)
        said = problem
        await asyncio.sleep(1.0)

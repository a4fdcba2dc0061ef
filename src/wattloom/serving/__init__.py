"""One way to serve HTTP: addresses, who may ask, how long and how much, on uvicorn's protocols.

Knows neither joules nor pods. A program brings an ASGI app, or pages, and gets the rest from here.
"""

"""MCP: the calls as tools of the Model Context Protocol, for agents that speak it.

A doorway only, as the API is: every tool makes one call of `observations.calls`, with the caller that its token names.
Over stdio one process serves one agent; over HTTP one process serves many, each request with a token of its own. The
SDK takes more than a second to import, so the modules here import it inside functions.
"""

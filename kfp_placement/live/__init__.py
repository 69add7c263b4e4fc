"""Runs, queues and histories of a live cluster: read, followed, released.

`connection` talks to the API server, which all other modules take as an argument. What they read
becomes views of the engine's room `views`, which the engine's room `render` shows.
"""

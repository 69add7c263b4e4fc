"""What the live commands ask of a cluster and change there; the API server is an argument.

`connection` is the way to it. What is read becomes views of the engine's room `views`, which the
engine's room `render` shows.
"""

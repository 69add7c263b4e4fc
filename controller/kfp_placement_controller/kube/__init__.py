"""The API server: the only package that calls it."""

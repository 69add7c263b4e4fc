"""Benchmarks: published tables and checks, one module for each.

`python -m benchmarks.paper --help`; `benchmarks/README.md` names the others. No distribution holds
this package, and none of our modules imports it.
"""

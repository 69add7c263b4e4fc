"""The command line `kfp-placement`, also `kubectl placement`.

Results go to stdout, everything else to stderr. Nothing here imports kfp, numpy or a compiler
before a command needs it: help and completion must come at once.
"""

from kfp_placement.cli.app import cli, main

__all__ = ["cli", "main"]

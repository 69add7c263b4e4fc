"""Choice of the search's constants: from generated instances alone, in pairs.

`python -m benchmarks.tune` is the command. None of what the other benchmarks judge by is used here.
"""

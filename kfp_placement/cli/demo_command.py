"""`demo`: the taxi pipeline on the thesis' cluster, for strangers, in one screen."""

import click


@click.command()
def demo() -> None:
    """Plan a sample pipeline."""
    raise NotImplementedError

"""A reader of durations files: run times by step name, in YAML or JSON.

A module of its own because it is a file format of its own, like `history_file`.
"""

from pathlib import Path

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.place import kind_of
from kfp_placement_engine.units.durations import parse_duration


def read_durations(data: bytes, *, name: str) -> dict[str, float]:
    """Read run times in seconds by step name, from lines such as `train: 20m`.

    Args:
        data: bytes of the file.
        name: name of the file, for messages.

    Raises:
        InputError: the file is not a mapping, or a duration is malformed.
    """
    documents = load_documents(data, name=name, max_bytes=RUN_MAX_BYTES)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        content = kind_of(documents[0]) if len(documents) == 1 else f"{len(documents)} documents"
        raise InputError(f"{name}: holds {content}; write one `step: 20m` per line")
    durations: dict[str, float] = {}
    for step, duration in documents[0].items():
        try:
            durations[step] = parse_duration(duration)
        except QuantityError as error:
            raise QuantityError(f"{name}: step {step!r:.120}: {error}") from error
    return durations


def read_durations_file(path: str | Path) -> dict[str, float]:
    """Read run times from a file.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be read or is malformed.
    """
    return read_durations(read_file(path, max_bytes=RUN_MAX_BYTES), name=str(path))

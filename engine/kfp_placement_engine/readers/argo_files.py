"""A reader of files and folders with Argo's objects, among which a run or its templates are."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.readers.argo.keys import GROUP, WORKFLOW_KINDS
from kfp_placement_engine.readers.argo.plain.limits import semaphore_limits
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.other_texts import way_out
from kfp_placement_engine.readers.text.place import Place, text_or_empty
from kfp_placement_engine.readers.tree.options import ArgoObjects

MAX_FILES = 1000
"""Largest number of YAML and JSON files in a folder; large repositories of Workflows have 200."""

MAX_ENTRIES = 100_000
"""Largest number of files and folders that are looked at."""

_ENDINGS = (".yaml", ".yml", ".json")
_CONFIG_MAP = re.compile(rb"^ *kind: *[\"']?ConfigMap|\"kind\": *\"ConfigMap\"", re.MULTILINE)
_SMALLER = "name a smaller folder, or the files"


def read_argo_objects(path: str | Path) -> ArgoObjects:
    """Read the objects of Argo in a file, or in the YAML and JSON files below a folder.

    A file of a folder that cannot be read is left out, with a sentence about it.

    Raises:
        InputNotFoundError: there is no such file or folder.
        InputError: the file cannot be read, or there is no object of Argo.
        LimitError: there are too many files, or they are too large.
    """
    name = str(path)
    objects, unread = list[Fields](), list[str]()
    if Path(path).is_dir():
        for file in _files(name):
            try:
                data = read_file(file, max_bytes=RUN_MAX_BYTES)
                # Most YAML files of a repository are of others, and some are not YAML at all.
                if GROUP.encode() in data:
                    objects += argo_objects(data, file)
                elif _CONFIG_MAP.search(data):
                    # One that cannot be read is most likely of others.
                    with suppress(InputError):
                        objects += argo_objects(data, file)
            except InputError as error:
                unread.append(str(error))
    else:
        data = read_file(path, max_bytes=RUN_MAX_BYTES)
        objects += argo_objects(data, name)
        if not objects and (what := way_out(data)):
            raise InputError(f"{name}: {what}")
    if not objects:
        also = f"; of {len(unread)} files that cannot be read: {unread[0]}" if unread else ""
        raise InputError(f"{name}: holds neither objects of Argo nor limits of semaphores{also}")
    return ArgoObjects(tuple(objects), _summary(unread, name))


def argo_objects(data: bytes, name: str) -> Iterator[Fields]:
    """Yield the objects of Argo in the bytes of a file, and ConfigMaps that may limit semaphores.

    Raises:
        InputError: the file is neither YAML nor JSON, or is empty.
        LimitError: the file is beyond a documented limit.
    """
    for document in load_documents(data, name=name, max_bytes=RUN_MAX_BYTES):
        items = document.get("items") if isinstance(document, dict) else None
        for each in items if isinstance(items, list) else [document]:
            if isinstance(each, dict) and _is_of_argo(each):
                yield Fields(each, Place(name))


def _is_of_argo(document: dict[str, object]) -> bool:
    version = text_or_empty(document.get("apiVersion"))
    if semaphore_limits(document):
        return True
    return document.get("kind") in WORKFLOW_KINDS and version.startswith(f"{GROUP}/")


def _summary(unread: list[str], name: str) -> tuple[str, ...]:
    if not unread:
        return ()
    if len(unread) == 1:
        return (f"not used: {unread[0]}",)
    return (f"not used: {len(unread)} files of {name} that cannot be read; first {unread[0]}",)


def _files(folder: str) -> Iterator[str]:
    """Yield the files in a folder and those below, hidden ones left out, in order of their names.

    Raises:
        LimitError: there are too many, or they are too large.
    """
    entries, files, size_bytes = 0, list[str](), 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        entries += len(folders) + len(names)
        if entries > MAX_ENTRIES:
            raise LimitError(f"{folder}: holds more than {MAX_ENTRIES} files; {_SMALLER}")
        for each in sorted(names):
            file = Path(parent, each)
            # Not a pipe, which would be waited for.
            if file.suffix in _ENDINGS and not each.startswith(".") and file.is_file():
                files.append(str(file))
                size_bytes += file.stat().st_size
    if len(files) > MAX_FILES:
        raise LimitError(
            f"{folder}: holds {len(files)} YAML and JSON files, more than {MAX_FILES}; {_SMALLER}"
        )
    if size_bytes > RUN_MAX_BYTES:
        raise LimitError(
            f"{folder}: its YAML and JSON files have {size_bytes / 2**20:.0f} MiB, more than"
            f" {RUN_MAX_BYTES / 2**20:g}; {_SMALLER}"
        )
    yield from files

"""Nodes of large Workflows, which Argo writes compressed: unpacked within limits of memory.

Argo up to 4.0 writes gzip; from 4.1 on, its controller may be set to zstd or brotli.
"""

import base64
import binascii
import sys
import zlib
from collections.abc import Callable
from typing import NamedTuple

import brotli

from kfp_placement_engine.exceptions import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_NODES_BYTES = 32 * 2**20
"""Largest decompressed text of a Workflow's nodes.

Argo writes at most 1 MB compressed, which is about 10 MB decompressed.
"""

MAX_NODES_VALUES = 2_000_000
"""Limit of JSON values in decompressed nodes.

A value that Argo writes takes about 24 bytes of text. Text made of empty lists has ten times as
many values, which would need 2 GB of memory.
"""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_BITS = 16 + zlib.MAX_WBITS
_ZSTD_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): MAX_NODES_BYTES.bit_length() - 1}
_BROTLI_PIECE_BYTES = 2**20


class _Unpacked(NamedTuple):
    """Decompressed text, at least one byte longer than allowed if it is too long.

    Attributes:
        text: beginning of the text.
        is_whole: whether the compressed data has an end, and the text reaches it.
    """

    text: bytes
    is_whole: bool


def unpack_nodes(packed: str) -> bytes:
    """Decompress nodes, but never to more than `MAX_NODES_BYTES` or `MAX_NODES_VALUES`.

    Args:
        packed: data of gzip, zstd or brotli, in base64.

    Raises:
        InputError: the data is malformed, cut, or too large.
    """
    try:
        data = base64.b64decode(packed)
        unpacked = _format_of(data)(data)
    except (binascii.Error, ValueError, zlib.error, zstd.ZstdError, brotli.error) as error:
        message = f"status.compressedNodes cannot be unpacked as gzip, zstd or brotli: {error}"
        raise InputError(message) from error
    if len(unpacked.text) > MAX_NODES_BYTES:
        raise InputError(f"status.compressedNodes is larger than {MAX_NODES_BYTES} bytes")
    if not unpacked.is_whole:
        raise InputError("status.compressedNodes is cut: its compressed data has no end")
    # Commas within text count too, so the text has at most this many values. Counting is cheap.
    values = sum(map(unpacked.text.count, (b",", b"[", b"{")))
    if values > MAX_NODES_VALUES:
        raise InputError(
            f"status.compressedNodes has {values} values; at most {MAX_NODES_VALUES} are read"
        )
    return unpacked.text


def _format_of(data: bytes) -> Callable[[bytes], _Unpacked]:
    """Return what unpacks the data, by its first bytes; brotli has no such sign."""
    if data.startswith(_GZIP_MAGIC):
        return _unpacked_gzip
    return _unpacked_zstd if data.startswith(_ZSTD_MAGIC) else _unpacked_brotli


def _unpacked_gzip(data: bytes) -> _Unpacked:
    unpacker = zlib.decompressobj(_GZIP_BITS)
    text = unpacker.decompress(data, MAX_NODES_BYTES + 1)
    return _Unpacked(text, unpacker.eof)


def _unpacked_zstd(data: bytes) -> _Unpacked:
    unpacker = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
    text = unpacker.decompress(data, MAX_NODES_BYTES + 1)
    return _Unpacked(text, unpacker.eof)


def _unpacked_brotli(data: bytes) -> _Unpacked:
    # In small pieces: brotli may exceed the limit of a piece twofold.
    unpacker, text = brotli.Decompressor(), bytearray()
    piece = unpacker.process(data, output_buffer_limit=_BROTLI_PIECE_BYTES)
    while piece and len(text) <= MAX_NODES_BYTES:
        text += piece
        piece = unpacker.process(b"", output_buffer_limit=_BROTLI_PIECE_BYTES)
    return _Unpacked(bytes(text), unpacker.is_finished())

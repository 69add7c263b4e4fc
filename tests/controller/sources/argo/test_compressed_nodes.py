"""Compressed nodes: three formats, none of which can take much memory."""

import base64
import gzip
import json
import sys
import tracemalloc
import zlib

import brotli
import pytest

from kfp_placement_controller.sources.argo import compressed_nodes
from kfp_placement_controller.sources.argo.workflows import WorkflowContent
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.readers.argo.workflow_nodes import node_id
from tests.controller.planning.builders import observed
from tests.support.kubernetes import workflow_object

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MARKED = {"podMetadata": {"labels": {SCHEDULER_LABEL: "kfp-placement"}}}
NAMES = {name: node_id("wf", name) for name in map("wf.{}".format, range(500))}
NODES = {key: {"id": key, "name": name, "type": "Pod"} for name, key in NAMES.items()}
FORMATS = {"gzip": gzip.compress, "zstd": zstd.compress, "brotli": brotli.compress}
BOMB_BYTES = 2 * 2**30


def workflow_with_text(packed):
    return observed(workflow_object(spec=MARKED, status={"compressedNodes": packed}))


def workflow_with(data):
    return workflow_with_text(base64.b64encode(data).decode())


def problem(workflow):
    """Why its nodes cannot be read."""
    assert isinstance(workflow.content, WorkflowContent)
    return workflow.content.nodes()[1]


@pytest.mark.parametrize("compress", FORMATS.values(), ids=FORMATS)
def test_nodes_are_read_in_each_format(compress):
    workflow = workflow_with(compress(json.dumps(NODES).encode()))
    assert isinstance(workflow.content, WorkflowContent)
    nodes, why = workflow.content.nodes()
    assert (len(nodes), why) == (500, "")


@pytest.mark.parametrize("compress", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("lost_bytes", [1, 40])
def test_cut_data_is_said_in_each_format(compress, lost_bytes):
    workflow = workflow_with(compress(json.dumps(NODES).encode())[:-lost_bytes])
    assert "compressedNodes is cut" in problem(workflow)


def _bombs():
    """Return text of `BOMB_BYTES` zeros in each format, never held at once."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    frame, stream = zstd.ZstdCompressor(), brotli.Compressor(quality=1)
    piece = bytes(16 * 2**20)
    parts = [
        (deflate.compress(piece), frame.compress(piece), stream.process(piece))
        for _ in range(BOMB_BYTES // len(piece))
    ]
    ends = (deflate.flush(), frame.flush(), stream.finish())
    return dict(zip(FORMATS, map(b"".join, zip(*parts, ends, strict=True)), strict=True))


def test_gigabytes_are_not_unpacked_in_any_format():
    for name, bomb in _bombs().items():
        tracemalloc.start()
        why = problem(workflow_with(bomb))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "larger than 33554432 bytes" in why, name
        assert peak_bytes < 4 * compressed_nodes.MAX_NODES_BYTES, name


def test_a_window_that_takes_much_memory_is_refused():
    options = {int(zstd.CompressionParameter.window_log): 27}
    compressor = zstd.ZstdCompressor(options=options)
    workflow = workflow_with(compressor.compress(b"{") + compressor.flush(compressor.FLUSH_FRAME))
    assert "too much memory" in problem(workflow)


@pytest.mark.parametrize(
    "data", [b"no format at all", bytes(100), b'{"a": {}}', b"\x28\xb5\x2f\xfd" + b"\xff" * 90]
)
def test_data_in_no_format_is_said(data):
    workflow = workflow_with(data)
    assert "cannot be unpacked as gzip, zstd or brotli" in problem(workflow)


@pytest.mark.parametrize("packed", ["!", "AAAA", "A"])
def test_text_that_is_not_compressed_is_said(packed):
    workflow = workflow_with_text(packed)
    assert "compressedNodes" in problem(workflow)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[", id="no JSON"),
        pytest.param(b'{"x":' + b"[" * 10_000_000, id="deep"),
        pytest.param(b'{"x":"' + b'\\"' * 10_000_000, id="text without an end"),
        pytest.param(b'{"x":[' + b"[]," * 10_000_000 + b"0]}", id="many values"),
    ],
)
def test_nodes_that_are_malformed_or_too_many_are_said(text):
    workflow = workflow_with(gzip.compress(text, mtime=0))
    assert "cannot be read" in problem(workflow)

"""Names that Argo gives to nodes and pods."""

from functools import cache

LONGEST_PREFIX = 242
"""Longest prefix of a pod's name: 253 characters less the hash's ten and a dash."""


@cache
def fnv32a(text: str) -> int:
    """The 32-bit FNV-1a hash of a text."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def node_id(workflow: str, node_name: str) -> str:
    """The key of a node in the Workflow's status."""
    return workflow if node_name == workflow else f"{workflow}-{fnv32a(node_name)}"


def pod_name(workflow: str, node_name: str, template: str) -> str:
    """The name of a node's pod, in form v2."""
    if node_name == workflow:
        return workflow
    prefix = f"{workflow}-{template}" if template else workflow
    return f"{prefix[:LONGEST_PREFIX]}-{fnv32a(node_name)}"

"""Patches of the manifests are such as older versions of kubectl apply too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.manifests import DEPLOY

KUSTOMIZATIONS = sorted(DEPLOY.rglob("kustomization.yaml"))


def strategic_merge_patches(kustomization: Path) -> Iterator[tuple[str, list[Any]]]:
    """The documents of each patch that has the form of an object, by its file or target."""
    content = yaml.safe_load(kustomization.read_text("utf-8"))
    for patch in content.get("patches", ()):
        name = patch.get("path") or str(patch["target"])
        file = kustomization.parent / name
        text = file.read_text("utf-8") if "path" in patch else patch["patch"]
        documents = list(yaml.safe_load_all(text))
        if not any(isinstance(each, list) for each in documents):
            yield name, documents


@pytest.mark.parametrize(
    "kustomization", KUSTOMIZATIONS, ids=lambda path: str(path.parent.relative_to(DEPLOY))
)
def test_no_patch_deletes_two_objects(kustomization):
    """kustomize 5.5, which kubectl 1.32 has, ends with a nil pointer at the second one."""
    for name, documents in strategic_merge_patches(kustomization):
        deleting = [each for each in documents if each.get("$patch") == "delete"]
        assert len(deleting) <= 1, name


def test_the_patches_are_found():
    names = {name for path in KUSTOMIZATIONS for name, _ in strategic_merge_patches(path)}
    assert {"no-policy.yaml", "no-binding.yaml"} <= names

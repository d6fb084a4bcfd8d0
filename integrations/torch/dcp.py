# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint by its `checkpoint_id`: which classes it takes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.storage import StorageReader
from wirepress.errors import ParameterError
from wirepress.torch.dcp_metadata import NAME, Folder
from wirepress.torch.dcp_reader import CheckpointReader
from wirepress.torch.dcp_writer import CheckpointWriter

__all__ = ["CheckpointReader", "CheckpointWriter", "Registration", "register_dcp"]


class Registration:
    """What `register_dcp` changed; `remove` takes it back."""

    def __init__(self, writer: Callable[[Folder], Any], reader: Callable[[Folder], Any]) -> None:
        self._module = _choosing_module()
        self._before = {name: getattr(self._module, name) for name in _CLASSES}
        for name, make in zip(_CLASSES, (writer, reader), strict=True):
            setattr(self._module, name, _chosen(make))

    def remove(self) -> None:
        for name, before in self._before.items():
            setattr(self._module, name, before)


_CLASSES = ("FileSystemWriter", "FileSystemReader")


def _choosing_module() -> Any:
    """Where PyTorch chooses by `checkpoint_id`, which is not public."""
    try:
        module = importlib.import_module("torch.distributed.checkpoint._storage_utils")
    except ImportError:
        module = None
    if not all(hasattr(module, name) for name in _CLASSES):
        raise ParameterError(
            f"PyTorch {torch.__version__} does not choose writers and readers where others do: "
            f"give dcp.save a CheckpointWriter and dcp.load a CheckpointReader"
        )
    return module


def _chosen(make: Callable[[Folder], Any]) -> Any:
    """What PyTorch takes for a class of storage."""
    make.validate_checkpoint_id = FileSystemWriter.validate_checkpoint_id  # type: ignore
    return make


def _is_pickled(path: Folder) -> bool:
    try:
        with open(os.path.join(path, NAME), "rb") as file:
            return file.read(1) == b"\x80"
    except FileNotFoundError:
        return False


def register_dcp(
    recipe: str = "planes", *, rules: Mapping[str, str] | None = None, **options: Any
) -> Registration:
    """From now on `dcp.save(state, checkpoint_id=folder)`, `async_save` and `load`, which are given
    no writer and no reader, use CheckpointWriter and CheckpointReader, of this process.

    Folders that PyTorch's FileSystemWriter saved are loaded as before, and so is what has an
    address such as `s3://`, which is saved as before, too.

    Args:
        recipe, rules, options: as for CheckpointWriter; options of the reader as well.

    Returns:
        A handle whose `remove()` takes it back.
    """
    CheckpointWriter("", recipe, rules=rules, **options)  # raises where they are wrong

    def writer(path: Folder) -> CheckpointWriter:
        return CheckpointWriter(path, recipe, rules=rules, **options)

    def reader(path: Folder) -> StorageReader:
        return FileSystemReader(path) if _is_pickled(path) else CheckpointReader(path, **options)

    return Registration(writer, reader)

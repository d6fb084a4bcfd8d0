# SPDX-License-Identifier: Apache-2.0
"""The metadata file of a checkpoint (spec/dcp.md): PyTorch's Metadata as bytes, and back."""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from wirepress import arrays
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError

NAME = ".metadata"
DATA_NAME = re.compile(r"[0-9]+-[0-9a-f]{16}\.wpd")
"""Names of files of data: the rank, and letters that no other save has."""
DATA_MAGIC = b"WPD\x10"

Folder = str | os.PathLike[str]

_HEAD = struct.Struct("<4sQ")  # magic and version, bytes of the text
_MAGIC = b"WPM\x10"
_CRC = struct.Struct("<I")
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}


@dataclass(frozen=True)
class Place:
    """Where an item lies: `size` bytes of frames from `at` on, then `heads` bytes of their heads,
    whose CRC-32 is `seal`."""

    file: str
    at: int
    size: int
    heads: int
    seal: int
    raw: int
    """Bytes of the content."""

    @property
    def end(self) -> int:
        return self.at + self.size + self.heads

    def entry(self, files: Mapping[str, int]) -> dict[str, int]:
        return {
            "file": files[self.file], "at": self.at, "size": self.size, "heads": self.heads,
            "seal": self.seal,
        }  # fmt: skip


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def frame_dtype(dtype: torch.dtype) -> str:
    """The type of the frames of such tensors."""
    name = _dtype_name(dtype)
    name = {"float8_e4m3fn": "float8_e4m3"}.get(name, name)
    return name if name in arrays.DTYPES else "bytes"


# ---- to bytes -------------------------------------------------------------------------------


def _tensor_entry(
    name: str, tensor: TensorStorageMetadata, place: Callable[[str, torch.Size | None], Any]
) -> dict[str, Any]:
    return {
        "dtype": _dtype_name(tensor.properties.dtype),
        "shape": list(tensor.size),
        "requires_grad": bool(tensor.properties.requires_grad),
        "chunks": [
            {"offsets": list(chunk.offsets), "sizes": list(chunk.sizes)}
            | place(name, chunk.offsets)
            for chunk in tensor.chunks
        ],
    }


def _is_path(path: Any) -> bool:
    """Whether these are keys and positions in lists."""
    return isinstance(path, (tuple, list)) and all(type(word) in (str, int) for word in path)


def _paths(planner_data: Any) -> dict[str, list[str | int]] | None:
    """The way to each item in the nested state dict, as DefaultSavePlanner keeps it."""
    if planner_data is None:
        return None
    if not isinstance(planner_data, Mapping) or not all(map(_is_path, planner_data.values())):
        raise ParameterError(
            f"the planner left a {type(planner_data).__name__} for the metadata, which hold the "
            f"paths of DefaultSavePlanner alone"
        )
    return {name: list(path) for name, path in planner_data.items()}


def to_bytes(
    metadata: Metadata, places: Mapping[MetadataIndex, Place], sizes: Mapping[str, int]
) -> bytes:
    """The metadata file.

    Args:
        places: of every item.
        sizes: of the files of data, by name.
    """
    files = {name: i for i, name in enumerate(sizes)}

    def place(name: str, offsets: torch.Size | None) -> dict[str, int]:
        found = places.get(MetadataIndex(name, offsets))
        if found is None:
            raise ParameterError(f"no rank wrote {name} at {tuple(offsets or ())}")
        return found.entry(files)

    tensors, objects = {}, {}
    for name, item in metadata.state_dict_metadata.items():
        if isinstance(item, TensorStorageMetadata):
            tensors[name] = _tensor_entry(name, item, place)
        else:
            objects[name] = place(name, None) | {"raw": places[MetadataIndex(name)].raw}
    content = {
        "files": [{"name": name, "size": size} for name, size in sizes.items()],
        "tensors": tensors,
        "objects": objects,
        "paths": _paths(metadata.planner_data),
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    described = _HEAD.pack(_MAGIC, len(text)) + text
    return described + _CRC.pack(zlib.crc32(described))


# ---- from bytes -----------------------------------------------------------------------------


def _number(entry: Mapping[str, Any], key: str, limit: int = 1 << 62) -> int:
    value = entry[key]
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError
    return value


def _extents(values: Any) -> torch.Size:
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in values):
        raise ValueError
    return torch.Size(values)


def _files(entries: Any) -> dict[str, int]:
    files = {}
    for entry in entries:
        if not DATA_NAME.fullmatch(entry["name"]) or entry["name"] in files:
            raise ValueError
        files[entry["name"]] = _number(entry, "size")
    return files


def _path(words: Any) -> tuple[str | int, ...]:
    if not _is_path(words):
        raise ValueError
    return tuple(words)


def _place(entry: Mapping[str, Any], files: list[tuple[str, int]], raw: int) -> Place:
    file, size = files[_number(entry, "file", len(files) - 1)]
    place = Place(
        file,
        *(_number(entry, key, size) for key in ("at", "size", "heads")),
        seal=_number(entry, "seal", (1 << 32) - 1),
        raw=raw,
    )
    if place.end > size:
        raise ValueError
    return place


class _Content:
    """What a metadata file says, while it is turned into Metadata."""

    def __init__(self, content: Any) -> None:
        self.sizes = _files(content["files"])
        self._files = list(self.sizes.items())
        self.places: dict[MetadataIndex, Place] = {}
        self.items: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
        for name, entry in content["tensors"].items():
            self.items[name] = self._tensor(name, entry)
        for name, entry in content["objects"].items():
            self.items[name] = BytesStorageMetadata()
            raw = _number(entry, "raw")
            self.places[MetadataIndex(name)] = _place(entry, self._files, raw)
        if len(self.items) != len(content["tensors"]) + len(content["objects"]):
            raise ValueError
        paths = content["paths"]
        self.paths = paths and {name: _path(path) for name, path in paths.items()}

    def _tensor(self, name: str, entry: Mapping[str, Any]) -> TensorStorageMetadata:
        dtype, shape = _DTYPES[entry["dtype"]], _extents(entry["shape"])
        chunks = [self._chunk(name, dtype, shape, chunk) for chunk in entry["chunks"]]
        properties = TensorProperties(dtype=dtype, requires_grad=bool(entry["requires_grad"]))
        return TensorStorageMetadata(properties, shape, chunks)

    def _chunk(
        self, name: str, dtype: torch.dtype, shape: torch.Size, entry: Mapping[str, Any]
    ) -> ChunkStorageMetadata:
        offsets, sizes = _extents(entry["offsets"]), _extents(entry["sizes"])
        if not len(offsets) == len(sizes) == len(shape):
            raise ValueError
        if any(a + n > most for a, n, most in zip(offsets, sizes, shape, strict=True)):
            raise ValueError
        place = _place(entry, self._files, math.prod(sizes) * dtype.itemsize)
        if self.places.setdefault(MetadataIndex(name, offsets), place) is not place:
            raise ValueError
        return ChunkStorageMetadata(offsets, sizes)


def from_bytes(data: bytes) -> tuple[Metadata, dict[str, int]]:
    """The metadata, whose `storage_data` are places, and the sizes of the files of data.

    Raises:
        FrameError: the file is damaged, cut short or another one.
    """
    if data[:1] == b"\x80":
        raise CorruptError(
            "this is the pickled metadata of another writer, perhaps of PyTorch's "
            "FileSystemWriter: load it with FileSystemReader"
        )
    if data[:4] != _MAGIC[: len(data)]:
        raise CorruptError("this is not the metadata of a wirepress checkpoint of version 1")
    if len(data) < _HEAD.size or len(data) < sum(_HEAD.unpack_from(data)[1:]) + 16:
        raise TruncatedError(f"the metadata end after {len(data)} bytes")
    end = len(data) - _CRC.size
    if _HEAD.unpack_from(data)[1] != end - _HEAD.size:
        raise CorruptError("bytes follow the metadata")
    if _CRC.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
        raise CorruptError("the metadata are damaged: their CRC-32 is another")
    try:
        content = _Content(json.loads(data[_HEAD.size : end]))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise CorruptError("the metadata contradict themselves") from None
    metadata = Metadata(content.items, content.paths, content.places)
    return metadata, content.sizes


def read(folder: str) -> tuple[Metadata, dict[str, int]]:
    """`from_bytes` of a folder's metadata; errors name the file."""
    path = os.path.join(folder, NAME)
    with open(path, "rb") as file:
        data = file.read()
    try:
        return from_bytes(data)
    except FrameError as error:
        raise type(error)(f"{path}: {error}") from None

# SPDX-License-Identifier: Apache-2.0
"""Tensors in .wps files (spec/wps.md), compressed and checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from wirepress import wps
from wirepress.errors import FrameError, ParameterError
from wirepress.torch.memory import as_array, as_bytes, foreign_kind

_DTYPES = {
    word: getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(name, name))
    for word, name in wps.DTYPES.items()
} | {"F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def _check(name: Any, tensor: Any) -> torch.Tensor:
    if not isinstance(name, str):
        raise ParameterError(f"{name!r} is a {type(name).__name__}; names of tensors are text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"the name {name!a} is not text (UTF-8)") from None
    if not isinstance(tensor, torch.Tensor):
        raise ParameterError(f"{name} is a {type(tensor).__name__}, not a tensor")
    kind = foreign_kind(tensor) or ("" if tensor.dtype in _NAMES else str(tensor.dtype))
    if kind:
        raise ParameterError(f"tensor {name} is {kind}, which safetensors cannot describe")
    return tensor


def _header(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None) -> bytes:
    if any(type(text) is not str for pair in (metadata or {}).items() for text in pair):
        raise ParameterError("metadata maps texts to texts")
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]
        }  # fmt: skip
        at = end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)  # safetensors aligns its data


def _memory(tensor: torch.Tensor) -> memoryview:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return memoryview(as_array(as_bytes(plain)))


def save_file(
    tensors: Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    recipe: str | None = None,
    **options: Any,
) -> None:
    """Writes tensors to a .wps file, which has its name when it is whole and on stable storage.

    Args:
        tensors: by name, of any shape and strides; of the types that safetensors' torch API takes,
            without 4-bit floats and float8_e8m0fnu. Each is stored for itself, tied ones too.
        metadata: texts by name, as in safetensors.
        recipe: of float16, bfloat16, float32 and float64 tensors; None: `planes`, which is
            lossless. A lossy recipe must be named here. Other tensors are always lossless.
        options: of `wirepress.Compressor`, such as `threads`.

    Raises:
        ParameterError: a tensor of another type, sparse, nested, distributed (a DTensor) or without
            data, a name that is no text, or a recipe that does not take the tensors.
        OSError: from the file system; what was at `path` stays.
    """
    if "__metadata__" in tensors:
        raise ParameterError("__metadata__ cannot be the name of a tensor")
    checked = {name: _check(name, tensor) for name, tensor in tensors.items()}
    # The widest types first, as in safetensors, so that each tensor is aligned.
    order = sorted(checked, key=lambda name: (-checked[name].element_size(), name))
    header = _header({name: checked[name] for name in order}, metadata)
    with wps.whole_file(path) as file:
        writer = wps.Writer(file.write, header, recipe, **options)
        for tensor in writer.tensors:
            writer.add(_memory(checked[tensor.name]))
        writer.finish()


def _tensor(reader: wps.Reader, entry: wps.Tensor) -> torch.Tensor:
    if entry.dtype not in _DTYPES:
        raise ParameterError(f"tensor {entry.name} is {entry.dtype}, which is not supported here")
    memory = reader.read(entry.name)
    dtype = _DTYPES[entry.dtype]
    if not memory:
        return torch.empty(entry.shape, dtype=dtype, device="cpu")
    return torch.frombuffer(memory, dtype=dtype).reshape(entry.shape)


def load_file(
    path: str | os.PathLike[str], names: Iterable[str] | None = None, **options: Any
) -> dict[str, torch.Tensor]:
    """Reads tensors of a .wps file to the CPU.

    Args:
        names: the tensors to read; None: all of them. Others are not read from the disk.
        options: of `wirepress.Compressor`, such as `threads`.

    Raises:
        FrameError: the file is damaged; the text names the tensor, where it is one.
        ParameterError: the file has no tensor of a name.
    """
    with open(path, "rb") as file:
        try:
            reader = wps.Reader(file, **options)
            known = {entry.name: entry for entry in reader.tensors}
            wanted = list(known) if names is None else list(names)
            for name in wanted:
                if name not in known:
                    raise ParameterError(f"there is no tensor {name}")
            return {name: _tensor(reader, known[name]) for name in wanted}
        except (FrameError, ParameterError) as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from None

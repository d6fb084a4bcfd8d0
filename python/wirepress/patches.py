# SPDX-License-Identifier: Apache-2.0
"""Patches: what turns one state of a model's weights into the next, exactly (spec/patch.md).

`diff` makes a patch of two states, `patch` applies it, `fold` joins two that follow each other. A
state maps names to NumPy arrays or torch tensors in CPU memory. `diff_files` and `patch_file` do
the same with .safetensors files.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import mmap
import os
import re
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from wirepress import _core, api, arrays, seals, wps
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError

SUFFIX = ".wpp"
OPS = ("same", "ulp", "set", "full")
MAGIC = b"WPU\x10"
_HEAD = struct.Struct("<4sQQ")  # magic and version of the format, versions of base and target
_TAIL = struct.Struct("<QQ")  # size of the table, hash of all but the frames
_WORDS = (1, 2, 4)  # sizes of elements that can move by steps
_TORCH = {"float8_e4m3fn": "float8_e4m3"}
_DAMAGED = "the table of the patch is damaged"


class Item(NamedTuple):
    """A tensor: its type as frames name it, and its bytes, row by row."""

    dtype: str
    shape: tuple[int, ...]
    memory: Any

    def hash(self) -> str:
        return hash_text(self.memory)


class Entry(NamedTuple):
    """A tensor of the target, as the table of a patch describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    op: str
    base: str | None  # the hash of its bytes in the base; None: it has no part in this
    target: str
    frames: tuple[tuple[int, int], ...]  # sizes and seals

    @property
    def raw_size(self) -> int:
        return math.prod(self.shape) * arrays.dtype_size(arrays.dtype_code(self.dtype))


# ---- states ---------------------------------------------------------------------------------


def _torch_bytes(name: str, data: Any) -> Any:
    torch = sys.modules["torch"]
    if data.device.type != "cpu":
        raise ParameterError(f"tensor {name} is on {data.device}: bring it to the CPU")
    if data.layout != torch.strided or data.is_nested:
        kind = "nested" if data.is_nested else data.layout
        raise ParameterError(f"tensor {name} is {kind}: its values do not lie in rows")
    plain = data.detach().resolve_conj().resolve_neg()
    return plain.contiguous().reshape(-1).view(torch.uint8).numpy()


def item_of(name: str, data: Any) -> Item:
    """Describes an array or a tensor; shares its memory if that is contiguous."""
    if not isinstance(name, str):
        raise ParameterError(f"{name!r} is a {type(name).__name__}; names of tensors are text")
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(data, torch.Tensor):
        dtype = str(data.dtype).removeprefix("torch.")
        dtype = _TORCH.get(dtype, dtype)
        if dtype not in arrays.DTYPES:
            raise ParameterError(f"tensor {name} is {dtype}, which frames do not know")
        memory = _torch_bytes(name, data)
        return Item(dtype, tuple(data.shape), memory)
    if numpy is None or not isinstance(data, numpy.ndarray):
        raise ParameterError(f"{name} is a {type(data).__name__}, not an array or a tensor")
    code = arrays.describe(data.reshape(-1)).dtype
    flat = numpy.ascontiguousarray(data).reshape(-1)
    return Item(arrays.DTYPES[code], data.shape, flat.view(numpy.uint8))


def items_of(tensors: Mapping[str, Any]) -> dict[str, Item]:
    if not hasattr(tensors, "items"):
        raise TypeError(
            f"names and their tensors are needed, as a dict has them, not {type(tensors).__name__}"
        )
    return {name: item_of(name, data) for name, data in tensors.items()}


def hash_text(data: Any) -> str:
    """XXH3 of a buffer, as 16 hexadecimal digits."""
    return f"{_core.hash(data):016x}"


def _digest(rows: Any) -> str:
    return hash_text(json.dumps(sorted(rows), separators=(",", ":")).encode())


def digest(tensors: Mapping[str, Any]) -> str:
    """The name of a state: a hash of the names, types, shapes and bytes of its tensors.

    >>> import numpy as np
    >>> digest({"w": np.zeros(3, np.float32)})
    '1381cb7aa51a687b'
    """
    items = items_of(tensors)
    return _digest([name, *item[:2], item.hash()] for name, item in items.items())


# ---- making patches -------------------------------------------------------------------------


class _Maker:
    """Codes tensors and writes them one after the other; `finish` writes the table."""

    def __init__(self, write: Callable[[bytes], object], base: int, target: int, **options: Any):
        if "recipe" in options:
            raise ParameterError("a patch has recipes of its own: leave out the option recipe")
        base, target = arrays.whole("base", base), arrays.whole("target", target)
        if base >= target:
            raise ParameterError(f"versions rise; {base} to {target} does not")
        self._write, self._options = write, {**options, "checksum": "on"}
        self._head = _HEAD.pack(MAGIC, base, target)
        self._made: dict[str, api.Compressor] = {}
        self._rows: list[dict[str, Any]] = []
        write(self._head)

    def compressor(self, recipe: str) -> api.Compressor:
        if recipe not in self._made:
            self._made[recipe] = api.Compressor(recipe, **self._options)
        return self._made[recipe]

    def full(self, item: Item) -> bytes:
        compressor = self.compressor(wps.recipe_for(item.dtype, "planes"))
        code = arrays.dtype_code(item.dtype)
        n = len(item.memory) // arrays.dtype_size(code)
        return compressor.compress_view(arrays.View(item.memory, code, 1, (n,)))

    def _steps(self, old: Item, new: Item, word: int) -> bytes:
        kind = f"u{word}"
        return self.compressor("sparse").compress_steps(
            old.memory.view(kind), new.memory.view(kind)
        )

    def _set(self, old: Item, new: Item, word: int) -> list[bytes]:
        a, b = (item.memory.view(f"u{word}") for item in (old, new))
        return set_frames(self, new.dtype, a != b, b[a != b])

    def tensor(
        self, name: str, old: Item | None, new: Item, op: str, base: str | None, target: str
    ) -> None:
        """Adds a tensor; `old` is None or has the type and shape of `new`."""
        word = arrays.dtype_size(arrays.dtype_code(new.dtype))
        if old is not None and base == target:
            return self.add(name, new, "same", base, target, [])
        if old is None or word not in _WORDS or len(new.memory) == 0 or op == "full":
            return self.add(name, new, "full", base, target, [self.full(new)])
        frames = [self._steps(old, new, word)] if op == "ulp" else self._set(old, new, word)
        # Where most of a tensor changed by much, the tensor itself may be smaller.
        if sum(map(len, frames)) > len(new.memory) // 2:
            whole = self.full(new)
            if len(whole) <= sum(map(len, frames)):
                return self.add(name, new, "full", base, target, [whole])
        return self.add(name, new, op, base, target, frames)

    def add(
        self, name: str, of: Any, op: str, base: str | None, target: str, frames: list[bytes]
    ) -> None:
        """Adds a tensor that is coded already; `of` has its dtype and shape."""
        sealed = []
        for frame in frames:
            self._write(frame)
            compressor = self.compressor("sparse")
            sealed.append([len(frame), seals.seal(seals.heads_of(frame, compressor))])
        self._rows.append({
            "name": name, "dtype": of.dtype, "shape": list(of.shape), "op": op, "base": base,
            "target": target, "frames": sealed,
        })  # fmt: skip

    def finish(self, base: str, target: str, header: str | None = None) -> None:
        """`base` and `target` are digests; `header` of a .safetensors file, if that changed."""
        table = {"base": base, "target": target, "header": header, "tensors": self._rows}
        text = json.dumps(table, separators=(",", ":")).encode()
        size = len(text).to_bytes(8, "little")
        self._write(text + _TAIL.pack(len(text), _core.hash(self._head + text + size)))


def set_frames(maker: _Maker, dtype: str, changed: Any, values: Any) -> list[bytes]:
    """The places of what changed, and the new words there."""
    places = maker.compressor("sparse").compress(changed.view("i1"))
    item = Item(dtype, values.shape, values.reshape(-1).view("u1"))
    return [places, maker.full(item)]


def _diff(
    maker: _Maker, old: Mapping[str, Item], new: Mapping[str, Item], op: str, header: str | None
) -> None:
    if op not in OPS[1:]:
        raise ParameterError(f'unknown op "{op}"; known: {", ".join(OPS[1:])}')
    hashes = [{name: item.hash() for name, item in items.items()} for items in (old, new)]
    for name, item in new.items():
        before = old.get(name)
        if before is not None and before[:2] != item[:2]:
            before = None
        base = None if before is None else hashes[0][name]
        maker.tensor(name, before, item, op, base, hashes[1][name])
    digests = [
        _digest([name, *item[:2], known[name]] for name, item in items.items())
        for items, known in ((old, hashes[0]), (new, hashes[1]))
    ]
    maker.finish(*digests, header)


def diff(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    base: int = 0,
    target: int = 1,
    op: str = "ulp",
    **options: Any,
) -> bytes:
    """Makes the patch that turns `old` into `new`, bit for bit.

    Args:
        old, new: names to NumPy arrays or torch tensors in CPU memory; the same or others.
        base, target: numbers of the two versions, which `patch` tells and `fold` compares.
        op: `ulp`: steps in the order of floats, the smallest. `set`: new words and their places,
            for receivers that keep no copy. `full`: changed tensors as they are.
        options: of `wirepress.Compressor`, such as `threads`.

    >>> import numpy as np
    >>> old = {"w": np.ones(100000, np.float32)}
    >>> new = {"w": old["w"].copy()}
    >>> new["w"][::100] *= 1.000001
    >>> update = diff(old, new, base=3, target=4)
    >>> len(update) < 2000
    True
    >>> patch(update, old)
    4
    >>> bool((old["w"] == new["w"]).all())
    True
    """
    pieces: list[bytes] = []
    maker = _Maker(pieces.append, base, target, **options)
    _diff(maker, items_of(old), items_of(new), op, None)
    return b"".join(pieces)


# ---- reading patches ------------------------------------------------------------------------


def _checked_hash(text: Any) -> str:
    if not (isinstance(text, str) and re.fullmatch("[0-9a-f]{16}", text)):
        raise ValueError
    return text


def _entry(row: Any) -> Entry:
    shape, op = tuple(row["shape"]), row["op"]
    frames = tuple((size, seal) for size, seal in row["frames"])
    numbers = [*shape, *(number for pair in frames for number in pair)]
    if not all(type(n) is int and 0 <= n < 1 << 60 for n in numbers):
        raise ValueError
    if type(row["name"]) is not str or len(frames) != {"same": 0, "set": 2}.get(op, 1):
        raise ValueError
    base = row["base"] if row["base"] is None else _checked_hash(row["base"])
    target = _checked_hash(row["target"])
    if op not in OPS or (base is None and op != "full") or (op == "same" and base != target):
        raise ValueError
    word = arrays.dtype_size(arrays.dtype_code(row["dtype"]))
    if op in ("ulp", "set") and word not in _WORDS:
        raise ValueError
    return Entry(row["name"], row["dtype"], shape, op, base, target, frames)


class Patch:
    """A patch that was read; its table is checked, its frames are when they are used.

    Args:
        data: the bytes of a patch.
        options: of `wirepress.Compressor`, such as `threads`.

    Raises:
        FrameError: not a patch, or one that is damaged or cut short.
    """

    def __init__(self, data: Any, **options: Any) -> None:
        try:
            self._data = memoryview(data).cast("B")
        except TypeError:
            raise TypeError(
                f"a patch is bytes in one piece, not {type(data).__name__} (`patch` takes it "
                f"first, then the tensors)"
            ) from None
        self.compressor = api.Compressor(**options)
        if len(self._data) < _HEAD.size + _TAIL.size:
            raise TruncatedError(f"{len(self._data)} bytes are no whole patch")
        head = self._data[: _HEAD.size]
        magic, self.base_version, self.target_version = _HEAD.unpack(head)
        if magic != MAGIC:
            raise CorruptError("this is not a patch of version 1")
        end = len(self._data) - _TAIL.size
        size, expected = _TAIL.unpack(self._data[end:])
        if size > end - _HEAD.size:
            raise TruncatedError(f"the patch has {len(self._data)} bytes, less than its end says")
        text = bytes(self._data[end - size : end])
        if _core.hash(bytes(head) + text + size.to_bytes(8, "little")) != expected:
            raise CorruptError("the head or the table of the patch is damaged, or it was cut short")
        try:
            table = json.loads(text)
            self.base, self.target = _checked_hash(table["base"]), _checked_hash(table["target"])
            self.header = table["header"]
            self.entries = [_entry(row) for row in table["tensors"]]
            if self.header is not None:
                self.header.encode()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ParameterError):
            raise CorruptError(_DAMAGED) from None
        if self.base_version >= self.target_version:
            raise CorruptError(_DAMAGED)
        if _digest([e.name, e.dtype, e.shape, e.target] for e in self.entries) != self.target:
            raise CorruptError("the tensors of the table are not those of its digest")
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        at = _HEAD.size
        for entry in self.entries:
            places = self._places[entry.name] = []
            for frame_size, seal in entry.frames:
                places.append((at, frame_size, seal))
                at += frame_size
        if at != end - size or len(self._places) != len(self.entries):
            raise CorruptError("the table and the frames of the patch contradict each other")

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles have the patch's bytes, as their own."""
        return {**vars(self), "_data": bytes(self._data)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_data": memoryview(state["_data"])})

    def frames(self, entry: Entry) -> list[memoryview]:
        """The frames of a tensor, which match their seals."""
        found = []
        for at, size, seal in self._places[entry.name]:
            frame = self._data[at : at + size]
            if seals.seal(seals.heads_of(frame, self.compressor)) != seal:
                raise CorruptError("its frame does not match its seal in the table")
            found.append(frame)
        return found

    def _expand(self, frame: memoryview, size: int) -> memoryview:
        info = self.compressor.inspect(frame)
        if info.raw_size != size:
            raise CorruptError(f"its frame holds {info.raw_size} bytes, not {size}")
        if 8 * (info.n_blocks or 0) > len(frame):  # before memory is taken for what it announces
            raise TruncatedError(f"its frame of {len(frame)} bytes ends before its content does")
        out = arrays.unwritten(size)
        self.compressor.decompress(frame, out)
        return out

    def words(self, entry: Entry) -> tuple[Any, Any]:
        """Of a tensor with the op `set`: where it changes, and its new words there."""
        import numpy

        word = arrays.dtype_size(arrays.dtype_code(entry.dtype))
        places, values = self.frames(entry)
        marks = numpy.frombuffer(self._expand(places, math.prod(entry.shape)), numpy.uint8)
        if marks.size and marks.max() > 1:
            raise CorruptError("the places of its new words hold more than 0 and 1")
        changed = marks.view(bool)
        new = numpy.frombuffer(self._expand(values, word * int(changed.sum())), f"u{word}")
        return changed, new

    def _moved(self, entry: Entry, base: Item | None) -> memoryview:
        if entry.op == "full":
            return self._expand(self.frames(entry)[0], entry.raw_size)
        if base is None or base[:2] != (entry.dtype, entry.shape):
            raise ParameterError("the base has no such tensor")
        out = arrays.unwritten(len(base.memory))
        out[:] = base.memory
        if entry.op == "ulp":
            self.compressor.take_steps(self.steps_frame(entry), out)
        elif entry.op == "set":
            import numpy

            changed, new = self.words(entry)
            numpy.frombuffer(out, new.dtype)[changed] = new
        return out

    def steps_frame(self, entry: Entry) -> memoryview:
        """The frame of a tensor with the op `ulp`."""
        (frame,) = self.frames(entry)
        word = arrays.dtype_size(arrays.dtype_code(entry.dtype))
        of = arrays.dtype_size(arrays.dtype_code(self.compressor.inspect(frame).dtype))
        if of != word:
            raise CorruptError(f"its steps are of words of {of} bytes, not {word}")
        return frame

    def steps(self, entry: Entry) -> Any:
        """The steps of a tensor with the op `ulp`, as an array of integers."""
        import numpy

        word = arrays.dtype_size(arrays.dtype_code(entry.dtype))
        return numpy.frombuffer(self._expand(self.steps_frame(entry), entry.raw_size), f"i{word}")

    def apply(self, entry: Entry, base: Item | None) -> memoryview:
        """The bytes of a tensor in the target, which match their hash.

        Raises:
            FrameError: the patch is damaged; the text names the tensor.
            ParameterError: the base has no such tensor.
        """
        try:
            out = self._moved(entry, base)
            if hash_text(out) != entry.target:
                raise CorruptError(
                    f"its bytes do not become those of version {self.target_version}"
                )
            return out
        except (FrameError, ParameterError) as error:
            raise type(error)(f"tensor {entry.name}: {error}") from None

    def check_base(self, items: Mapping[str, Item]) -> None:
        """Refuses a state that is not the base of this patch."""
        hashes = {name: item.hash() for name, item in items.items()}
        found = _digest([n, *i[:2], hashes[n]] for n, i in items.items())
        wrong = [e for e in self.entries if e.base is not None and hashes.get(e.name) != e.base]
        if found == self.base:
            if wrong:
                raise CorruptError(f"tensor {wrong[0].name}: its hash and the digest disagree")
            for entry in self.entries:
                if entry.op != "full" and items[entry.name][:2] != (entry.dtype, entry.shape):
                    raise CorruptError(f"tensor {entry.name}: its type or shape is not the base's")
            return
        expected = f"the patch is for version {self.base_version}, digest {self.base}"
        if found == self.target:
            raise ParameterError(
                f"the weights have version {self.target_version} already; {expected}"
            )
        where = ""
        if wrong:
            is_now = hashes.get(wrong[0].name, "missing")
            where = f": tensor {wrong[0].name} is {is_now}, not {wrong[0].base}"
        raise ParameterError(f"the weights have digest {found}; {expected}{where}")


def _writable(name: str, data: Any) -> memoryview:
    try:
        return arrays.words_of(data)[0]
    except ParameterError as error:
        raise ParameterError(f"tensor {name}: {error}") from None


def _refuse_shared(opened: Patch, items: Mapping[str, Item], written: Mapping[str, Any]) -> None:
    """Refuses tensors that share memory and become different; tied weights become the same."""
    spans = sorted(
        (item.memory.ctypes.data, len(item.memory), entry.target, entry.name)
        for entry in opened.entries
        if (item := items.get(entry.name)) is not None and len(item.memory) > 0
    )
    for before, after in itertools.pairwise(spans):
        apart = before[0] + before[1] <= after[0]
        unwritten = before[3] not in written and after[3] not in written
        if not (apart or unwritten or before[:3] == after[:3]):
            raise ParameterError(
                f"tensors {before[3]} and {after[3]} share memory and become different"
            )


def tensor_of(entry: Entry, memory: memoryview, torch: Any) -> Any:
    """The tensor or, where torch is None, the array of these bytes."""
    import numpy

    if torch is not None:
        names = {theirs: ours for ours, theirs in _TORCH.items()}
        dtype = getattr(torch, names.get(entry.dtype, entry.dtype))
        if not memory:
            return torch.empty(entry.shape, dtype=dtype)
        return torch.frombuffer(memory, dtype=dtype).reshape(entry.shape)
    array, view = arrays.empty(arrays.dtype_code(entry.dtype), entry.shape)
    if not memory:
        return array
    numpy.asarray(memoryview(view).cast("B"))[:] = numpy.frombuffer(memory, numpy.uint8)
    return array


def patch(update: Any, tensors: MutableMapping[str, Any], **options: Any) -> int:
    """Applies a patch to a state in place; returns the version that it then has.

    Nothing is touched before the base was checked and all that changes has become what the patch
    says. Arrays and tensors keep their memory, except those whose type or shape changes.

    Raises:
        ParameterError: the state is not the patch's base; the text says which was expected.
        FrameError: the patch is damaged.
    """
    opened = Patch(update, **options)
    items = items_of(tensors)
    opened.check_base(items)
    changed = {e.name: opened.apply(e, items.get(e.name)) for e in opened.entries if e.op != "same"}
    stays = {
        name: _writable(name, tensors[name])
        for entry in opened.entries
        if (name := entry.name) in changed and name in items
        and items[name][:2] == (entry.dtype, entry.shape)
    }  # fmt: skip
    _refuse_shared(opened, items, stays)
    torch = sys.modules.get("torch")
    if torch is not None and not any(isinstance(t, torch.Tensor) for t in tensors.values()):
        torch = None
    fresh = {
        entry.name: tensor_of(entry, changed[entry.name], torch)
        for entry in opened.entries
        if entry.op != "same" and entry.name not in stays
    }
    for name, memory in stays.items():
        memory[:] = changed[name]
    tensors.update(fresh)
    for name in items.keys() - {entry.name for entry in opened.entries}:
        del tensors[name]
    return opened.target_version


# ---- folding --------------------------------------------------------------------------------


def _fold_sets(maker: _Maker, first: Patch, second: Patch, a: Entry, b: Entry) -> list[bytes]:
    import numpy

    (places, old), (later, new) = first.words(a), second.words(b)
    words = numpy.zeros(places.size, new.dtype)
    words[places], words[later] = old, new
    changed = places | later
    return set_frames(maker, b.dtype, changed, words[changed])


def _fold_entry(maker: _Maker, first: Patch, second: Patch, a: Entry | None, b: Entry) -> None:
    def add(op: str, base: str | None, frames: list[Any]) -> None:
        maker.add(b.name, b, op, base, b.target, [bytes(frame) for frame in frames])

    alike = a is not None and (a.dtype, a.shape) == (b.dtype, b.shape)
    if b.op == "full":
        return add("full", a.base if a is not None and alike else None, second.frames(b))
    if a is None or not alike:
        raise CorruptError("the first patch has no such tensor")
    if b.op == "same":
        return add(a.op, a.base, first.frames(a))
    if a.op == "same":
        return add(b.op, a.base, second.frames(b))
    if a.op == "full":
        item = Item(a.dtype, a.shape, first.apply(a, None))
        return add("full", a.base, [maker.full(item._replace(memory=second.apply(b, item)))])
    if a.op != b.op:
        raise ParameterError(f"tensor {b.name}: {a.op} and {b.op} cannot be folded")
    if a.op == "set":
        return add("set", a.base, _fold_sets(maker, first, second, a, b))
    return add("ulp", a.base, [_add_steps(maker, first, second, a, b)])


def _add_steps(maker: _Maker, first: Patch, second: Patch, a: Entry, b: Entry) -> bytes:
    compressor = maker.compressor("sparse")
    frames = first.steps_frame(a), second.steps_frame(b)
    infos = [compressor.inspect(frame) for frame in frames]
    if len({(info.recipe, info.block_size, info.streamed) for info in infos}) == 1:
        return compressor.add(*frames)
    return compressor.compress(first.steps(a) + second.steps(b))  # made with other options


def fold(first: Any, second: Any, **options: Any) -> bytes:
    """Joins two patches, of which the second follows the first, to one that does both.

    Raises:
        ParameterError: the second does not begin where the first ends; or a tensor has the op
            `ulp` in one and `set` in the other.
        FrameError: a patch is damaged.
    """
    p, q = Patch(first, **options), Patch(second, **options)
    if (p.target_version, p.target) != (q.base_version, q.base):
        raise ParameterError(
            f"the second patch is for version {q.base_version}, digest {q.base}; the first leads "
            f"to {p.target_version}, digest {p.target}"
        )
    pieces: list[bytes] = []
    maker = _Maker(pieces.append, p.base_version, q.target_version, **options)
    before = {entry.name: entry for entry in p.entries}
    for entry in q.entries:
        try:
            _fold_entry(maker, p, q, before.get(entry.name), entry)
        except FrameError as error:
            raise type(error)(f"tensor {entry.name}: {error}") from None
    maker.finish(p.base, q.target, q.header if q.header is not None else p.header)
    return b"".join(pieces)


# ---- files ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _held(path: str) -> Iterator[memoryview]:
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):  # a pipe
            yield memoryview(file.read())
        elif status.st_size == 0:
            yield memoryview(b"")
        else:  # closed when the last array of it is gone
            yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _open_patch(data: memoryview, name: str, options: dict[str, Any]) -> Patch:
    """The patch in a file, whose name stands in the sentence where it is none."""
    try:
        return Patch(data, **options)
    except FrameError as error:
        raise type(error)(f"{name}: {error}") from None


def _open_weights(data: memoryview, name: str) -> tuple[bytes, dict[str, Item]]:
    """The header and the tensors of a .safetensors file."""
    import numpy

    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(wps.MAX_HEADER, len(data) - 8):
        raise CorruptError(f"{name}: this is not a .safetensors file")
    header, start = bytes(data[8 : 8 + length]), 8 + length
    tensors = wps.parse_header(header)
    try:
        header.decode()
    except UnicodeDecodeError:
        raise CorruptError(f"{name}: the header is not UTF-8") from None
    if start + max((t.end for t in tensors), default=0) != len(data):
        raise TruncatedError(f"{name}: the file has {len(data)} bytes, not those of its tensors")
    items = {}
    for t in tensors:
        memory = numpy.frombuffer(data[start + t.begin : start + t.end], numpy.uint8)
        items[t.name] = Item(*_kind(t), memory)
    return header, items


def _kind(tensor: wps.Tensor) -> tuple[str, tuple[int, ...]]:
    """Type and shape of a tensor of a file, as patches have them."""
    opaque = tensor.frame_dtype == "bytes"
    return tensor.frame_dtype, (tensor.size,) if opaque else tensor.shape


def _header_of(opened: Patch, base: bytes) -> tuple[bytes, list[wps.Tensor]]:
    """The header of the target's file, which describes the tensors of the table."""
    header = base if opened.header is None else opened.header.encode()
    tensors = wps.parse_header(header)
    if {t.name: _kind(t) for t in tensors} == {e.name: (e.dtype, e.shape) for e in opened.entries}:
        return header, tensors
    if opened.header is not None:
        raise CorruptError("the header and the table of the patch contradict each other")
    raise ParameterError(
        "the patch changes names, types or shapes and was not made of files, so that the header of "
        "the result is not known: make it with wirepress diff"
    )


def diff_files(
    old: str, new: str, output: str, *, base: int = 0, target: int = 1, **options: Any
) -> int:
    """Writes the patch between two .safetensors files; returns its size. See `diff`."""
    op, sizes = options.pop("op", "ulp"), [0]
    with contextlib.ExitStack() as stack:
        (head_a, a), (head_b, b) = (
            _open_weights(stack.enter_context(_held(name)), name) for name in (old, new)
        )
        file = stack.enter_context(wps.whole_file(output))

        def write(data: bytes) -> None:
            file.write(data)
            sizes[0] += len(data)

        maker = _Maker(write, base, target, **options)
        header = None if head_a == head_b else head_b.decode()
        _diff(maker, a, b, op, header)
    return sizes[0]


def patch_file(base: str, update: str, output: str, **options: Any) -> int:
    """Writes the .safetensors file that a patch makes of another; returns its version.

    `output` has its name when it is whole and on stable storage; it may be `base` itself.
    """
    with _held(base) as data, _held(update) as raw:
        opened = _open_patch(raw, update, options)
        header, items = _open_weights(data, base)
        opened.check_base(items)
        header, tensors = _header_of(opened, header)
        order = {entry.name: entry for entry in opened.entries}
        with wps.whole_file(output) as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for tensor in tensors:
                entry, item = order[tensor.name], items.get(tensor.name)
                file.write(
                    item.memory if entry.op == "same" and item else opened.apply(entry, item)
                )
        return opened.target_version


def fold_files(first: str, second: str, output: str, **options: Any) -> int:
    """Writes the fold of two patches; returns its size."""
    with _held(first) as a, _held(second) as b:
        for data, name in (a, first), (b, second):
            _open_patch(data, name, options)
        folded = fold(a, b, **options)
    with wps.whole_file(output) as file:
        file.write(folded)
    return len(folded)

# SPDX-License-Identifier: Apache-2.0
"""Weights on their way from a trainer to those who use them: patches in a folder or object store.

A store holds patches (spec/patch.md) and a list of them, VERSIONS, which is replaced last. An
anchor is a patch whose base is the empty state, version 0. Both sides keep a copy of the weights
in the memory of their host.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from wirepress import patches, wps
from wirepress.errors import CorruptError, FrameError, ParameterError
from wirepress.torch.memory import foreign_kind
from wirepress.uncopied import Uncopied

_LIST = "VERSIONS"
_TRIES = 3  # to stage, where the publisher deletes what is being fetched


class Update(NamedTuple):
    """A patch in a store, as its list describes it."""

    file: str
    base: int
    version: int
    digest: str  # of the weights of this version
    size: int

    @property
    def is_anchor(self) -> bool:
        return self.base == 0


# ---- stores ---------------------------------------------------------------------------------


class _Folder:
    def __init__(self, path: str) -> None:
        self._path = path
        os.makedirs(path, exist_ok=True)

    def read(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with wps.whole_file(os.path.join(self._path, name)) as file:
            file.write(data)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._path, name))

    def names(self) -> list[str]:
        return os.listdir(self._path)


# Where an object that is put is there whole, or not at all.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "memory"}


class _Remote:
    """A store that fsspec knows. Where it has files, they are written aside and moved."""

    def __init__(self, url: str) -> None:
        import fsspec

        self._files, self._root = fsspec.core.url_to_fs(url)
        self._files.makedirs(self._root, exist_ok=True)
        self._whole = not _OBJECT_STORES.isdisjoint([url.partition("://")[0]])

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        try:
            self._files.invalidate_cache()
            return self._files.cat_file(self._at(name))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        aside = self._at(name if self._whole else f".{name}.part")
        self._files.pipe_file(aside, data)
        if not self._whole:
            self._files.mv(aside, self._at(name))

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._at(name))

    def names(self) -> list[str]:
        self._files.invalidate_cache()
        found = self._files.ls(self._root, detail=False)
        return [path.rstrip("/").rpartition("/")[2] for path in found]


def _open_store(where: str | os.PathLike[str]) -> _Folder | _Remote:
    path = os.fspath(where).removeprefix("file://")
    return _Remote(path) if "://" in path else _Folder(path)


def _read_list(store: _Folder | _Remote) -> list[Update]:
    """The patches of a store, by rising version; none: nothing was published."""
    data = store.read(_LIST)
    if data is None:
        return []
    text, _, mark = data.rpartition(b"\n")
    try:
        if mark.decode() != patches.hash_text(text):
            raise ValueError
        found, last = [Update(*row) for row in json.loads(text)], 0
        for update in found:
            kinds = [type(field) for field in update]
            if kinds != [str, int, int, str, int] or not 0 <= update.base < update.version:
                raise ValueError
            # Names of files are ours: no list makes this read or remove another file.
            if update.version <= last or update.file != _file_name(update.version, update.base):
                raise ValueError
            last = update.version
    except (ValueError, TypeError, RecursionError):
        raise CorruptError(f"the list {_LIST} of the store is damaged") from None
    return found


# Of a patch, or of one that was being written when its publisher was killed; with its version.
_PATCH = re.compile(rf"(?P<version>\d{{12,}})-\d{{12,}}{re.escape(patches.SUFFIX)}")
_UNFINISHED = re.compile(rf"\.(VERSIONS|{_PATCH.pattern})(\.[0-9a-f]+)?\.part")


def _file_name(version: int, base: int) -> str:
    return f"{version:012}-{base:012}{patches.SUFFIX}"


def _write_list(store: _Folder | _Remote, updates: list[Update]) -> None:
    text = json.dumps(updates, separators=(",", ":")).encode()
    store.write(_LIST, text + b"\n" + patches.hash_text(text).encode())


# ---- the trainer's side ---------------------------------------------------------------------

Weights = torch.nn.Module | Mapping[str, torch.Tensor]


def _state(weights: Weights) -> dict[str, torch.Tensor]:
    held = weights.state_dict() if isinstance(weights, torch.nn.Module) else weights
    for name, tensor in held.items():
        if not isinstance(tensor, torch.Tensor):
            raise ParameterError(f"{name} is a {type(tensor).__name__}, not a tensor")
        if kind := foreign_kind(tensor):
            raise ParameterError(f"tensor {name} is {kind}, which cannot be published")
    return {name: tensor.detach().cpu() for name, tensor in held.items()}


def _copies(weights: Weights) -> dict[str, torch.Tensor]:
    """The weights as they are now, in memory of their own."""
    with torch.inference_mode(False):
        return {name: tensor.clone() for name, tensor in _state(weights).items()}


class WeightPublisher(Uncopied):
    """Publishes the weights of a model as patches of their last published version.

    One publisher writes to a store at a time. It goes on with the versions that the store has; its
    first patch is then an anchor, unless the weights are those of the last version.

    Args:
        weights: a model, or a mapping of names to tensors; read by each `publish`.
        where: a folder, or a URL that fsspec knows, such as `s3://bucket/run`.
        anchor_every: versions from one anchor to the next.
        keep: the last so many anchors stay in the store, with the patches behind them. What is
            older, and what publishers left that were killed, is deleted with each new anchor. A
            subscriber that is just fetching an older anchor begins again with a newer one.
        op: see `wirepress.diff`.
        options: of `wirepress.Compressor`, such as `threads`.
    """

    def __init__(
        self,
        weights: Weights,
        where: str | os.PathLike[str],
        *,
        anchor_every: int = 50,
        keep: int = 2,
        op: str = "ulp",
        **options: Any,
    ) -> None:
        if anchor_every < 1:
            raise ParameterError(f"anchor_every is {anchor_every}; at least 1")
        if keep < 1:
            raise ParameterError(f"keep is {keep}; at least 1 anchor")
        self._weights, self._store = weights, _open_store(where)
        self._every, self._keep, self._op, self._options = anchor_every, keep, op, options
        self._updates = _read_list(self._store)
        self._attempt = self._updates  # the list that was written last, perhaps in vain
        self._warned = False
        self._base: dict[str, torch.Tensor] = {}  # a copy of the last published version
        if self._updates:
            now = _copies(weights)
            if patches.digest(now) == self._updates[-1].digest:
                self._base = now

    @property
    def version(self) -> int:
        """The last published version; 0: none."""
        return self._updates[-1].version if self._updates else 0

    def publish(self, version: int | None = None) -> int:
        """Publishes the weights as they are, and returns their version.

        The new version is there when this returns. Where this fails, the version is not there and
        nothing else changed, or the store failed after it took the version: the next call finds
        out, and its patch is then an anchor.

        Args:
            version: above the last one; None: the last one plus 1.

        Raises:
            ParameterError: the version does not rise, or someone else published in between.
            OSError: from the store.
        """
        self._catch_up()
        version = self.version + 1 if version is None else version
        if version <= self.version:
            raise ParameterError(f"version {self.version} is published, {version} is not above it")
        now = _copies(self._weights)
        anchored = max((u.version for u in self._updates if u.is_anchor), default=-self._every)
        full = not self._base or version - anchored >= self._every
        base = 0 if full else self.version
        data = patches.diff(
            {} if full else self._base, now, base=base, target=version, op=self._op, **self._options
        )
        digest = patches.Patch(data).target
        self._commit(Update(_file_name(version, base), base, version, digest, len(data)), data)
        self._base = now
        return version

    def _catch_up(self) -> None:
        found = _read_list(self._store)
        if found == self._updates:
            return
        if found != self._attempt:
            raise ParameterError("the store has other versions than this publisher made")
        self._updates, self._base = found, {}  # whether others saw it is not known

    def _commit(self, update: Update, data: bytes) -> None:
        kept = [*self._updates, update]
        anchors = [i for i, known in enumerate(kept) if known.is_anchor]
        kept = kept[anchors[max(len(anchors) - self._keep, 0)] if anchors else 0 :]
        self._store.write(update.file, data)
        self._attempt = kept
        _write_list(self._store, kept)  # from here on the version is published
        dropped, self._updates = [u.file for u in self._updates if u not in kept], kept
        for name in dropped:
            self._remove(name)
        if update.is_anchor:
            self._sweep(update.version)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(Exception):  # an old file that stays harms nothing
            self._store.remove(name)

    def _sweep(self, version: int) -> None:
        """Deletes what no list names, up to a version: another publisher may be about to name what
        is above."""
        try:
            names = self._store.names()
            named = {update.file for update in _read_list(self._store)}
        except Exception as error:
            if not self._warned:
                warnings.warn(
                    f"the store cannot be listed, so what killed publishers left stays: {error}",
                    stacklevel=4,
                )
            self._warned = True
            return
        for name in names:
            found = _PATCH.fullmatch(name) or _UNFINISHED.fullmatch(name)
            if found and name not in named and int(found["version"] or 0) <= version:
                self._remove(name)


# ---- the users' side ------------------------------------------------------------------------


class _Staged(NamedTuple):
    version: int
    digest: str
    changed: dict[str, torch.Tensor]
    names: list[str]  # of all tensors, in order


class WeightSubscriber(Uncopied):
    """Follows the weights that a `WeightPublisher` publishes.

    `stage` does what takes time, while the old weights are in use; `commit` hands over tensors that
    are checked and in memory. Where either fails the subscriber stays at its version.

    Args:
        where: as for the publisher.
        tensors: weights that are there already, such as those of a checkpoint, if they are a
            version of the store; they are copied. None: begin with an anchor.
        options: of `wirepress.Compressor`, such as `threads`.
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        tensors: Mapping[str, torch.Tensor] | None = None,
        **options: Any,
    ) -> None:
        self._store, self._options = _open_store(where), options
        self.tensors: dict[str, torch.Tensor] = {}
        """The weights of `version`; not to be written to."""
        self.version = 0
        self._digest = ""
        self._staged: _Staged | None = None
        if tensors is not None:
            own = _copies(tensors)
            digest = patches.digest(own)
            for update in _read_list(self._store):
                if update.digest == digest:
                    self.version, self._digest, self.tensors = update.version, digest, own

    def latest(self) -> int:
        """The last published version; 0: none."""
        updates = _read_list(self._store)
        return updates[-1].version if updates else 0

    def stage(self, version: int | None = None) -> int:
        """Fetches, joins and checks what leads to a version; returns that version.

        Takes patches from the own version on, or an anchor and those behind it, whichever is less
        to fetch; and the other where a patch is lost or damaged.

        Args:
            version: None: the last published one.

        Raises:
            ParameterError: the store has no such version, or nothing leads to it from here.
            FrameError: what would lead there is damaged.
        """
        updates = _read_list(self._store)
        for _ in range(_TRIES):
            try:
                return self._stage(updates, version)
            except Exception:
                known, updates = updates, _read_list(self._store)
                if updates == known:
                    raise
        return self._stage(updates, version)

    def _stage(self, updates: list[Update], version: int | None) -> int:
        if not updates:
            raise ParameterError("nothing is published yet")
        version = updates[-1].version if version is None else version
        digests = {update.version: update.digest for update in updates}
        # Another digest: the store was begun anew, and the number means other weights.
        if version == self.version and digests.get(version, self._digest) == self._digest:
            self._staged = None
            return version
        failure: Exception = ParameterError(
            f"nothing in the store leads from version {self.version} to version {version}; its "
            f"last is {updates[-1].version}"
        )
        for base, way in self._ways(updates, version):
            try:
                self._staged = self._follow(base, way)
                return version
            except Exception as error:  # the store's errors, too: the other way may be there
                failure = error
        raise failure

    def _ways(self, updates: list[Update], version: int) -> Iterable[tuple[int, list[Update]]]:
        """Patches that lead to a version, and the version they begin with; the least first."""
        by_version = {update.version: update for update in updates}
        ways, way, at = list[tuple[int, list[Update]]](), list[Update](), version
        while (update := by_version.get(at)) is not None:
            way, at = [update, *way], update.base
            if at in (0, self.version):
                ways.append((at, way))
        return sorted(ways, key=lambda way: sum(update.size for update in way[1]))

    def _fetch(self, update: Update) -> bytes:
        data = self._store.read(update.file)
        if data is None:
            raise FrameError(f"{update.file} is not in the store any more")
        return data

    def _fold(self, first: bytes, second: bytes) -> bytes:
        return patches.fold(first, second, **self._options)

    def _follow(self, base: int, way: list[Update]) -> _Staged:
        # Steps first: they are sums of short codes, where an anchor is whole tensors.
        fetched = [self._fetch(update) for update in way]
        first, rest = fetched[0], fetched[1:]
        if base == 0 and len(rest) > 1:
            rest = [functools.reduce(self._fold, rest)]
        data = functools.reduce(self._fold, [first, *rest])
        opened = patches.Patch(data, **self._options)
        if (opened.target_version, opened.target) != (way[-1].version, way[-1].digest):
            raise CorruptError(f"{way[-1].file} leads to another version than the list says")
        items = patches.items_of(self.tensors if base else {})
        opened.check_base(items)
        own = patches.items_of(self.tensors)
        changed = {}
        for entry in opened.entries:
            if entry.op == "same":
                continue
            old = own.get(entry.name)
            # An anchor has all tensors; those that are as they were need not be loaded again.
            alike = old is not None and old[:2] == (entry.dtype, entry.shape)
            if alike and not base and old.hash() == entry.target:
                continue
            memory = opened.apply(entry, items.get(entry.name))
            changed[entry.name] = patches.tensor_of(entry, memory, torch)
        names = [entry.name for entry in opened.entries]
        return _Staged(opened.target_version, opened.target, changed, names)

    def commit(self, load: Callable[[str, torch.Tensor], object] | None = None) -> int:
        """Makes the staged version the own one; returns it.

        Args:
            load: takes the name and the new value of every tensor that changed, and brings it to
                where it is used. Where it raises, the subscriber stays at the old version, and
                `commit` can be called again. None: `tensors` is all that is wanted.
        """
        if self._staged is None:
            return self.version
        version, digest, changed, names = self._staged
        if load is not None:
            for name, tensor in changed.items():
                load(name, tensor)
        self.tensors = {name: changed.get(name, self.tensors.get(name)) for name in names}
        self.version, self._digest, self._staged = version, digest, None
        return version

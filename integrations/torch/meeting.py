# SPDX-License-Identifier: Apache-2.0
"""Rounds of peers that come and go: who takes part in one, and whether it counts.

Peers share a `torch.distributed` store. In a round those who are there get one list of members, and
vote when they have done their part; the round counts on all members, or on none. What decides is
written by compare and set, so that the first word holds for everybody.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import secrets
import time
import warnings
from datetime import timedelta
from typing import NamedTuple

import torch.distributed as dist
from wirepress.errors import ParameterError

_PAUSE = 0.02  # seconds between two looks at the store
_KEPT = 100  # rounds whose words stay in the store; from the last one that counted on all do
_SWEEP = 10  # rounds after which those of older ones are deleted
_OUTSIDERS = 4  # times the patience: who is not a member waits for those who may still exchange

# Of a round. A store lists what begins like its prefix, so words of other trainings, too.
_WORD = re.compile(r"(\d+)/(?:(?:count|members|state|votes|verdict)\Z|(?:peer|gloo)/)")


class Peer(NamedTuple):
    """One who came to a round."""

    name: str
    nonce: str  # of the process: another one of this name is another peer
    state: str  # a digest of what all peers must have in common
    settings: str
    joins: bool  # it came when there had been rounds
    link: int  # the round since which it has its connections; -1: it has none


@dataclasses.dataclass(frozen=True)
class Meeting:
    """A round: its number, its members by name, and the state that they go on from."""

    number: int
    state: str
    members: tuple[Peer, ...]

    def index(self, nonce: str) -> int | None:
        """The place of a peer among the members."""
        places = (i for i, peer in enumerate(self.members) if peer.nonce == nonce)
        return next(places, None)

    def giving(self) -> list[int]:
        """The places of the members that have the state; others can only take it."""
        return [i for i, peer in enumerate(self.members) if peer.state == self.state]


class Rounds:
    """What one peer knows of the rounds.

    Args:
        store: that all peers reach, under a prefix of their own.
        name: of this peer; members are in the order of their names.
        settings: as text; peers with other ones are not let in.
        peers: how many the first round that this peer proposes waits for, within its patience.
        patience: seconds that a round waits for peers that were in the last one, and for votes.
        timeout: seconds after which a peer that no round takes gives up.
    """

    def __init__(
        self,
        store: dist.Store,
        name: str,
        settings: str,
        peers: int,
        patience: float,
        timeout: float,
    ) -> None:
        self.store, self._name, self._settings = store, name, settings
        self.nonce = secrets.token_hex(8)
        self._peers, self._patience, self._timeout = peers, patience, timeout
        self._expected: set[str] = set()
        self._current: str | None = None  # the state after the last round that counted ...
        self._counted = -1  # ... and its number
        self._joins = store.check(["latest"])
        self._number = int(store.get("latest")) if self._joins else 0
        self._find_current()
        self._seen: dict[int, Peer] = {}

    def meet(self, state: str, link: int) -> Meeting:
        """The next round that takes this peer, whose state has that digest; `link` as in Peer.

        Raises:
            ParameterError: the others have other settings, or one of them has this peer's name.
            TimeoutError: no round takes it.
        """
        end = time.monotonic() + self._timeout
        while True:
            self._skip_settled()
            meeting = self._attend(state, link, end)
            if meeting is None:
                continue
            if meeting.index(self.nonce) is not None:
                return meeting
            self._check_let_in(meeting)
            self._settle(meeting, _OUTSIDERS * self._patience)  # this peer came too late for it

    def vote(self, meeting: Meeting, state: str) -> bool:
        """This member has done its part, and its state would be one of that digest. Returns whether
        all members have, and the round counts."""
        if meeting.index(self.nonce) == meeting.giving()[0]:
            self.store.set(self._key("state"), state)
        if self.store.add(self._key("votes"), 1) == len(meeting.members):
            mine = self.store.get(self._key("state")).decode()
            self._decide("verdict", f"counts {mine}")
        return self._settle(meeting, self._patience)

    def give_up(self, meeting: Meeting) -> bool:
        """This member cannot do its part. Returns whether the round counts nevertheless, as all
        votes were there."""
        self._decide("verdict", "dropped")
        return self._settle(meeting, self._patience)

    # ---- parts of them ----

    def _key(self, word: str, number: int | None = None) -> str:
        return f"{self._number if number is None else number}/{word}"

    def _decide(self, word: str, value: str) -> str:
        """What stands there, which is `value` where nothing stood there."""
        return self.store.compare_set(self._key(word), "", value).decode()

    def _read(self, word: str, number: int | None = None) -> str | None:
        """A word of a round, of the next one where none is named; None: it has none yet."""
        key = self._key(word, number)
        return self.store.get(key).decode() if self.store.check([key]) else None

    def _find_current(self) -> None:
        """The state after the last round that counted, for peers that all start again."""
        for number in range(self._number - 1, self._first() - 1, -1):
            counts, _, state = (self._read("verdict", number) or "").partition(" ")
            if counts == "counts":
                self._current, self._counted = state, number
                return

    def _first(self) -> int:
        """The first round of which the store has all words."""
        return int(self.store.get("first")) if self.store.check(["first"]) else 0

    def _skip_forgotten(self) -> bool:
        """Whether others went on for so long that the round is not known any more. The words of the
        last one that counted are, and those of all after it."""
        first = self._first()
        if first <= self._number:
            return False
        self._number, self._seen = first, {}
        return True

    def _skip_settled(self) -> None:
        self._skip_forgotten()
        while (verdict := self._read("verdict")) is not None:
            self._note(verdict)

    def _note(self, verdict: str) -> bool:
        counts, _, state = verdict.partition(" ")
        if counts == "counts":
            self._current, self._counted = state, self._number
        self._number += 1
        self._seen = {}
        return counts == "counts"

    def _sweep(self) -> None:
        """Deletes the words of old rounds. Others may be doing the same, and one who is killed here
        leaves words that the next one finds."""
        first = min(self._number - _KEPT, self._counted)
        if first <= 0 or not hasattr(self.store, "list_keys"):
            return
        self.store.set("first", str(max(first, self._first())))  # before anything is missing
        for key in self.store.list_keys():
            found = _WORD.match(key)
            if found and int(found[1]) < first:
                self.store.delete_key(key)

    def _settle(self, meeting: Meeting, seconds: float) -> bool:
        """Waits for the verdict of a round; without one in time it is dropped."""
        with contextlib.suppress(RuntimeError):  # DistStoreError is one
            self.store.wait([self._key("verdict")], timedelta(seconds=seconds))
        verdict = self._decide("verdict", "dropped")
        self._expected = {peer.name for peer in meeting.members}
        counts = self._note(verdict)
        self.store.set("latest", str(self._number))
        if self._number % _SWEEP == 0 and meeting.index(self.nonce) == 0:
            with contextlib.suppress(RuntimeError):  # old words do no harm
                self._sweep()
        return counts

    def _attend(self, state: str, link: int, end: float) -> Meeting | None:
        """Comes to the round, and waits for the list of its members; None: it is long over."""
        me = Peer(self._name, self.nonce, state, self._settings, self._joins, link)
        place = self.store.add(self._key("count"), 1)
        self.store.set(self._key(f"peer/{place}"), json.dumps(me))
        patient = time.monotonic() + self._patience
        while (members := self._read("members")) is None:
            now = time.monotonic()
            if now > end:
                raise TimeoutError(
                    f"peer {self._name}: no round took it in {self._timeout:g} s; of those who are "
                    f"in the rounds, none is left or has this peer's state"
                )
            if now > patient and self._skip_forgotten():
                return None
            if self._may_propose(state):
                self._propose(late=now > patient)
            time.sleep(_PAUSE)
        if self._skip_forgotten():  # else this peer may have begun a round anew that is deleted
            return None
        written = json.loads(members)
        return Meeting(
            self._number, written["state"], tuple(Peer(*each) for each in written["members"])
        )

    def _may_propose(self, state: str) -> bool:
        return state == self._current if self._current is not None else not self._joins

    def _propose(self, late: bool) -> None:
        """Closes the round if everyone is there, or it has waited long enough."""
        count = int(self.store.add(self._key("count"), 0))
        for place in range(1, count + 1):
            key = self._key(f"peer/{place}")
            if place not in self._seen and self.store.check([key]):
                self._seen[place] = Peer(*json.loads(self.store.get(key)))
        alike = [peer for _, peer in sorted(self._seen.items()) if peer.settings == self._settings]
        here = {peer.name: peer for peer in alike}  # the last one of a name
        missing = self._expected - here.keys()
        if not late and (missing or len(here) < (0 if self._expected else self._peers)):
            return
        if missing:
            warnings.warn(
                f"round {self._number} goes on without {', '.join(sorted(missing))}, for which it "
                f"waited {self._patience:g} s",
                stacklevel=2,
            )
        elif not self._expected and len(here) < self._peers:
            warnings.warn(
                f"round {self._number} goes on with {len(here)} of {self._peers} peers, for which "
                f"it waited {self._patience:g} s",
                stacklevel=2,
            )
        members = [here[name] for name in sorted(here)]
        state = self._current or next(peer.state for peer in members if not peer.joins)
        self._decide("members", json.dumps({"state": state, "members": members}))

    def _check_let_in(self, meeting: Meeting) -> None:
        first = meeting.members[0]
        if first.settings != self._settings:
            raise ParameterError(
                f"peers differ in settings: {first.settings} of {first.name}, {self._settings} of "
                f"{self._name}"
            )
        if any(peer.name == self._name for peer in meeting.members):
            raise ParameterError(f"another peer has the name {self._name}")

# SPDX-License-Identifier: Apache-2.0
"""Who talks to whom: process groups over hosts and inside them.

With several ranks on every host the exchange has two levels, as LR+INC of SqueezeNIC: the ranks of
a host add their gradients inside it, each keeps a part, and only ranks of equal number on different
hosts exchange compressed parts.
"""

from __future__ import annotations

import dataclasses
import socket
from collections import defaultdict

import torch
import torch.distributed as dist
from wirepress.errors import ParameterError
from wirepress.torch.shared import Rooms, open_rooms, open_there
from wirepress.torch.transport import Mail, Opener, Post


@dataclasses.dataclass
class Wires:
    """One process group per communicating stage, so that stages run at once."""

    rank: int
    n_ranks: int
    send: Post  # between hosts: of ranks with the same number on their host
    gather: Post
    everyone: Post
    local_in: Post | None = None  # inside the host; None: one level
    local_out: Post | None = None
    rooms_in: Rooms | None = None  # memory that the host's ranks share; None: they send messages
    rooms_out: Rooms | None = None

    adds_in_host: str = ""
    """How ranks of a host add their gradients: on "devices", in "memory" that they share, by
    "messages"; "": they do not."""

    @property
    def adds_there(self) -> bool:
        return self.adds_in_host == "devices"

    def __post_init__(self) -> None:
        self.send_mail, self.gather_mail = Mail(self.send), Mail(self.gather)

    def close(self) -> None:
        """Lets go of groups and shared memory; counts stay."""
        posts = [self.send, self.gather, self.everyone, self.local_in, self.local_out]
        for post in {id(post): post for post in posts if post}.values():
            post.close()
        self.rooms_in = self.rooms_out = None
        for mail in (self.send_mail, self.gather_mail):
            mail.close()

    @property
    def sent(self) -> int:
        """Bytes that left this rank for other hosts; for any rank where there is one level."""
        return self.send.sent + self.gather.sent

    @property
    def sent_locally(self) -> int:
        """Bytes that went to other ranks of this host by messages, in a two-level exchange."""
        return sum(post.sent for post in (self.local_in, self.local_out) if post)


def hosts_of(group: dist.ProcessGroup) -> list[list[int]]:
    """The group's ranks (of the group) by host, hosts in order of their first rank."""
    names: list[str] = [""] * dist.get_world_size(group)
    dist.all_gather_object(names, socket.gethostname(), group=group)
    hosts: dict[str, list[int]] = defaultdict(list)
    for rank, name in enumerate(names):
        hosts[name].append(rank)
    return list(hosts.values())


def connect(
    group: dist.ProcessGroup,
    n_values: int,
    levels: int | None = None,
    device: torch.device | None = None,
    n_there: int = 0,
) -> Wires:
    """Makes the groups; a collective call of all ranks of `group`, whose timeout they have.

    Args:
        n_values: of the largest job in memory of the CPU.
        device: where the ranks' values lie, if all are on CUDA devices ...
        n_there: ... and those of the largest job there.
        levels: 1: every rank with every rank; 2: inside hosts first; None: 2 where several hosts
            have equally many ranks, and more than one.

    Raises:
        ParameterError: two levels are asked for, and hosts have different numbers of ranks.
    """
    hosts = hosts_of(group)
    n_local = len(hosts[0])
    equal = all(len(ranks) == n_local for ranks in hosts)
    if levels == 2 and not equal:
        sizes = ", ".join(str(len(ranks)) for ranks in hosts)
        raise ParameterError(f"levels=2 needs equally many ranks on every host, not {sizes}")
    two = levels == 2 or (levels is None and equal and n_local > 1 and len(hosts) > 1)
    rank, n_ranks = dist.get_rank(group), dist.get_world_size(group)
    across = [list(ranks) for ranks in zip(*hosts, strict=True)] if two else [list(range(n_ranks))]
    groups = [across, across, *([hosts, hosts] if two else [])]
    opener = Opener(group)
    send, gather, *local = (opener.open(parts) for parts in groups)
    whole = opener.open([list(range(n_ranks))]) if two else gather
    wires = Wires(rank, n_ranks, send, gather, whole, *local)
    if wires.local_in and wires.local_out:
        posts = [wires.local_in, wires.local_out]
        rooms = [open_there(post, n_there, device) for post in posts] if device else [None]
        if not all(rooms):
            rooms = [open_rooms(post, n_values) for post in posts]
        wires.rooms_in, wires.rooms_out = rooms
        shared = "devices" if rooms[0] and rooms[0].there else "memory"
        wires.adds_in_host = shared if all(rooms) else "messages"
    return wires

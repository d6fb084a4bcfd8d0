# SPDX-License-Identifier: Apache-2.0
"""Closed forms: what collectives, codecs in their path, training steps and frame stores take.

Sizes are bytes, times seconds, rates bytes a second (a link of 25 Gb/s: 25e9 / 8), `n` the number
of workers. Numbers may be int or float; nothing is rounded. Papers cited:

  G   FPGA-based SmartNIC for Distributed Machine Learning (gCOW), ETH Zurich 2024
  T   Reducing MPI Communication Latency with FPGA-Based Hardware Compression, Chalmers 2025
  S   SqueezeNIC, NAIC'24
  F   Accelerating memory and I/O intensive HPC applications using hardware compression, JPDC 2024
  A   Agarwal et al., On the utility of gradient compression in distributed training, MLSys'22
  PY  Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from wirepress.errors import ParameterError

INFINITE = math.inf
MOST_BUCKETS = 1_000_000  # of a step that is replayed one by one


def _require(fine: bool, sentence: str) -> None:
    if not fine:
        raise ParameterError(sentence)


def alpha_beta(size: float, latency: float, rate: float) -> float:
    """Seconds of one message: T(z) = alpha + beta z, beta = 1 / rate. S, section 3."""
    return latency + size / rate


# ---- the codec in a message's path ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Stage:
    """A codec in the path of messages, as streaming stages with bounded rates (T, section 4.6.7).

    Attributes:
        ratio: raw size by what goes over the link.
        compress, decompress: raw bytes a second of all engines of a node.
        latency: start-up of one message at each of the two ends, seconds.
        host_link: raw bytes a second between host and engine (PCIe), each way.
        block: bytes of raw data until which an end hands nothing on; 0: word by word.
    """

    ratio: float
    compress: float = INFINITE
    decompress: float = INFINITE
    latency: float = 0.0
    host_link: float = INFINITE
    block: float = 0.0

    def __post_init__(self) -> None:
        rates = self.ratio, self.compress, self.decompress, self.host_link
        _require(min(rates) > 0, f"ratio and rates of a codec must be positive: {self}")
        _require(self.latency >= 0 and self.block >= 0, f"negative latency or block: {self}")

    @property
    def rate(self) -> float:
        """Raw bytes a second that pass both ends."""
        return min(self.compress, self.decompress, self.host_link)

    def through(self, link: float) -> float:
        """Raw bytes a second over a link: min(ratio * link, engines)."""
        return min(self.ratio * link, self.rate)

    def startup(self, size: float, link: float) -> float:
        """Seconds that a message of `size` bytes takes beyond its time in the slowest stage: both
        start-ups, and one block in each of the other stages."""
        piece = min(self.block, size)
        stages = piece / self.compress, piece / (self.ratio * link), piece / self.decompress
        return 2 * self.latency + sum(stages) - max(stages)

    def message(self, size: float, latency: float, link: float) -> float:
        """Seconds until `size` raw bytes lie expanded on the other side."""
        return latency + self.startup(size, link) + size / self.through(link)


def gain(stage: Stage, link: float) -> float:
    """Speed-up of large messages on a link that is never idle: min(ratio, engine / link).

    T assumes the ratio alone (its printed times are the plain ones divided by it), which holds
    while engine >= ratio * link."""
    return stage.through(link) / link


def full_ratio_until(stage: Stage) -> float:
    """The link rate up to which the gain is the whole ratio: engine / ratio."""
    return stage.rate / stage.ratio


def break_even(stage: Stage) -> float:
    """The link rate from which raw is faster, for large messages: the engine's rate, where the
    ratio is above 1; else 0."""
    return stage.rate if stage.ratio > 1 else 0.0


def break_even_serial(size: float, ratio: float, encode_decode: float) -> float:
    """The link rate below which a codec pays whose `encode_decode` seconds for `size` bytes overlap
    nothing: S (1 - 1/r) / t."""
    return size * (1 - 1 / ratio) / encode_decode if ratio > 1 else 0.0


def engines_for(rate: float, one_engine: float) -> int:
    """The fewest engines of that rate each that keep up with `rate`."""
    return max(1, math.ceil(rate / one_engine * (1 - 1e-12)))


# ---- collectives ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Network:
    """A full-bisection network: `rate` of each worker's link in each direction, `latency` of one
    message; `codec` in the path of every message, or None."""

    rate: float
    latency: float = 0.0
    codec: Stage | None = None

    def __post_init__(self) -> None:
        _require(self.rate > 0, f"a link's rate must be positive, not {self.rate:g}")
        _require(self.latency >= 0, f"a link's latency must not be negative: {self.latency:g}")

    def message(self, size: float) -> float:
        """Seconds of one message of `size` raw bytes."""
        if self.codec is None:
            return alpha_beta(size, self.latency, self.rate)
        return self.codec.message(size, self.latency, self.rate)

    def fan(self, size: float, senders: int, receivers: int) -> float:
        """Seconds of messages of `size` that all start at once, from `senders` into one node or
        from one node to `receivers` (or both: n to n). The node's link and engines are shared by
        all of them."""
        flows = max(senders, receivers)
        if self.codec is None:
            return self.latency + flows * size / self.rate
        c = self.codec
        one = c.message(size, self.latency, self.rate) - size / c.through(self.rate)
        # one sender compresses for all receivers, one receiver expands from all senders
        compress = c.compress * (flows / receivers)
        decompress = c.decompress * (flows / senders)
        host = c.host_link
        return one + flows * size / min(c.ratio * self.rate, compress, decompress, host)


def _workers(n: int) -> None:
    _require(n >= 1, f"{n} workers: at least 1 is needed")


def ring_allreduce(n: int, size: float, net: Network) -> float:
    """2 (n-1) messages of size / n, each after the one before. PY; S, section 3; G, section 2.1:
    compute O(N), bandwidth O(1)."""
    _workers(n)
    return 2 * (n - 1) * net.message(size / n)


def recursive_doubling_allreduce(n: int, size: float, net: Network) -> float:
    """ceil(log2 n) exchanges of the whole vector. Where n is no power of two, the surplus workers
    hand theirs over before and get the result after (two messages more)."""
    _workers(n)
    extra = 0 if n & (n - 1) == 0 else 2
    return (int(math.log2(n)) + extra) * net.message(size)


def recursive_halving_allreduce(n: int, size: float, net: Network) -> float:
    """log2 n exchanges of half, a quarter ... of the vector, whose parts are summed, and the same
    back: Rabenseifner's algorithm, Open MPI's for large vectors. Where n is no power of two, the
    surplus workers hand theirs over before and get the result after."""
    _workers(n)
    steps = int(math.log2(n))
    extra = 0 if n & (n - 1) == 0 else 2
    parts = sum(net.message(size / (2 << i)) for i in range(steps))
    return 2 * parts + extra * net.message(size)


def tree_allreduce(n: int, size: float, net: Network) -> float:
    """A binomial tree up (reduce) and down (broadcast): 2 ceil(log2 n) messages of the vector."""
    _workers(n)
    return 2 * math.ceil(math.log2(n)) * net.message(size)


def tree_broadcast(n: int, size: float, net: Network) -> float:
    """ceil(log2 n) messages of the vector, one after the other."""
    _workers(n)
    return math.ceil(math.log2(n)) * net.message(size)


def parameter_server(n: int, size: float, net: Network) -> float:
    """n workers push at once over the head's one link, then get the result: 2 n size / rate.
    G, table 2.1: peak bandwidth O(N)."""
    _workers(n)
    return net.fan(size, n, 1) + net.fan(size, 1, n)


def concurrent_allreduce(n: int, size: float, net: Network) -> float:
    """All gather from all others at once: (n-1) vectors over every link; n (n-1) in the whole
    network. G, section 2.1: O(N^2) bandwidth."""
    _workers(n)
    return net.fan(size, n - 1, n - 1) if n > 1 else 0.0


def concurrent_allreduce_one_link(n: int, size: float, net: Network) -> float:
    """The same where all n (n-1) vectors cross one link: the reading of G's O(N^2) as time."""
    _workers(n)
    return net.fan(size, n * (n - 1), n * (n - 1)) if n > 1 else 0.0


def sequential_allreduce(n: int, size: float, net: Network) -> float:
    """One worker after the other gathers from all others. G, table 2.1: O(N) and O(N)."""
    _workers(n)
    return n * net.fan(size, n - 1, 1) if n > 1 else 0.0


def hierarchical_allreduce(
    nodes: int, local: int, size: float, net: Network, intra: Network
) -> float:
    """Reduce-scatter inside nodes of `local` ranks, a ring between the nodes for each part, all
    at once over the node's one link, allgather inside. S, approach 1 (LR+INC), with chunks in every
    hop and a way back to all ranks."""
    _workers(nodes)
    _workers(local)
    inside = 2 * (local - 1) * intra.message(size / local)
    between = 2 * (nodes - 1) * net.fan(size / (nodes * local), local, local)
    return inside + between


def point_to_point(n: int, size: float, net: Network) -> float:
    """One message; n is not looked at."""
    _workers(n)
    return net.message(size)


SCHEMES: dict[str, Callable[[int, float, Network], float]] = {
    "ring": ring_allreduce,
    "recursive-doubling": recursive_doubling_allreduce,
    "recursive-halving": recursive_halving_allreduce,
    "tree": tree_allreduce,
    "broadcast": tree_broadcast,
    "ps": parameter_server,
    "concurrent": concurrent_allreduce,
    "sequential": sequential_allreduce,
    "p2p": point_to_point,
}
"""Seconds of (workers, bytes, network), by the name that the commands use."""

SENT: dict[str, Callable[[int], float]] = {
    "ring": lambda n: 2 * (n - 1) / n,
    "recursive-halving": lambda n: (
        2 * (1 - 1 / (1 << int(math.log2(n)))) + (2 if n & (n - 1) else 0)
    ),
    "recursive-doubling": lambda n: math.floor(math.log2(n)) + (2 if n & (n - 1) else 0),
    "tree": lambda n: 2 * math.ceil(math.log2(n)),
    "broadcast": lambda n: math.ceil(math.log2(n)),
    "ps": lambda n: n,
    "concurrent": lambda n: n - 1,
    "sequential": lambda n: n * (n - 1),
    "p2p": lambda n: 1,
}
"""Vectors that pass the busiest link in one direction, one after the other."""

PEAK_BANDWIDTH: dict[str, Callable[[int], float]] = {
    "ps": lambda n: n,
    "concurrent": lambda n: n * (n - 1),
    "ring": lambda n: 2 * (n - 1) / n,
    "sequential": lambda n: n - 1,
}
"""Vectors that are on their way at once where it is tightest. G, table 2.1, second column."""


def compute_to_communication(compute: float, communication: float) -> float:
    """G, figure 1.1: the lower, the more a step waits for the network."""
    return compute / communication if communication else INFINITE


# ---- a training step ------------------------------------------------------------------------


def step(
    compute: float,
    bucket: float,
    last_bucket: float,
    n_buckets: int,
    *,
    overlap: bool,
    codec: float = 0.0,
    gamma: float = 1.0,
) -> float:
    """Seconds of one step of data-parallel training. A, equations of sections 3 and 4, as G uses
    them for figure 4.4.

    With overlap: max(gamma * compute, (k-1) * bucket) + last_bucket, for k buckets that take
    `bucket` seconds each to exchange; without: compute + all of them. `codec` seconds are added as
    they are: compression on the device that computes hides behind nothing (G, gap 1). gamma >= 1
    is by how much computing slows down while communicating."""
    _require(n_buckets >= 1, f"{n_buckets} buckets: at least 1 is needed")
    others = (n_buckets - 1) * bucket
    if overlap:
        return max(gamma * compute, others) + last_bucket + codec
    return compute + others + last_bucket + codec


def overlapped_step(runs: Sequence[tuple[int, float, float]]) -> float:
    """Seconds of a step whose buckets are exchanged in order, each from when it is computed; `runs`
    of equal buckets: how many, and each one's seconds of computing and of exchange. G, figure 2.2.
    `step` supposes that the first bucket is there at once."""
    computed = sent = 0.0
    for n, compute, exchange in runs:
        # The slower of both stages is busy throughout: with the first bucket here, or the last.
        waits = max(sent, computed + compute) + n * exchange
        computed += n * compute
        sent = max(waits, computed + exchange)
    return sent


def buckets(size: float, n_buckets: int) -> tuple[float, float]:
    """Bytes of the first k-1 buckets and of the last where `size` is cut in k equal ones."""
    _require(n_buckets >= 1, f"{n_buckets} buckets: at least 1 is needed")
    return size / n_buckets, size / n_buckets


def bucket_runs(size: float, bucket: float) -> list[tuple[int, float]]:
    """How many buckets of which size, DDP's: as many of `bucket` bytes as fit, and the rest (T,
    section 4.6.2: 25 MiB)."""
    _require(bucket > 0, "a bucket must hold more than 0 bytes")
    full = int(size // bucket)
    rest = size - full * bucket
    runs = [(full, bucket)] if full else []
    return runs + ([(1, rest)] if rest > 0 or not full else [])


def bucket_sizes(size: float, bucket: float) -> list[float]:
    """The buckets of `bucket_runs`, one by one."""
    runs = bucket_runs(size, bucket)
    n = sum(count for count, _ in runs)
    _require(n <= MOST_BUCKETS, f"{n:.4g} buckets: a step has at most {MOST_BUCKETS}")
    return [each for count, each in runs for _ in range(count)]


# ---- two levels (S) -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TwoLevels:
    """S, table 1: `nodes` N of `local` M accelerators; rates and start-ups inside and between
    nodes; `share` r: compressed by raw size; seconds per raw byte of the codec on the GPU and in
    the NIC, for compressing and expanding.

    `chunked`: a ring's hop moves g/M (inside) and g/N (between nodes), and the NIC codes all of g
    in N hops together. The paper's equations have the whole g in every hop, with which its figure 3
    cannot be reached."""

    nodes: int
    local: int
    intra: float
    inter: float
    share: float
    intra_latency: float = 0.0
    inter_latency: float = 0.0
    gpu_compress: float = 0.0
    gpu_decompress: float = 0.0
    nic_compress: float = 0.0
    nic_decompress: float = 0.0
    chunked: bool = True

    def _intra(self, size: float) -> float:
        return alpha_beta(
            size / (self.local if self.chunked else 1), self.intra_latency, self.intra
        )

    def _inter(self, size: float) -> float:
        return alpha_beta(
            size / (self.nodes if self.chunked else 1), self.inter_latency, self.inter
        )

    def _nic(self, size: float) -> float:
        """N hops' compressing and expanding in the NIC."""
        once = size * (self.nic_compress + self.nic_decompress)
        return once if self.chunked else self.nodes * once

    def baseline(self, size: float) -> float:
        """S, eq. (1): (M-1) T_intra(g) + 2(N-1) T_inter(g). Called "compressed" in the text, but it
        has no term of a codec."""
        return (self.local - 1) * self._intra(size) + 2 * (self.nodes - 1) * self._inter(size)

    def approach1(self, size: float) -> float:
        """S, eq. (2), LR+INC: raw gradients are added locally, compressed ones between NICs."""
        return (
            (self.local - 1) * self._intra(size)
            + 2 * (self.nodes - 1) * self._inter(self.share * size)
            + self._nic(size)
        )

    def approach2(self, size: float) -> float:
        """S, eq. (3), CTLR+INC: the local reduction is compressed on the GPUs, too."""
        per_hop = size / (self.local if self.chunked else 1)
        gpu = (self.local - 1) * per_hop * (self.gpu_compress + self.gpu_decompress)
        return (
            (self.local - 1) * self._intra(self.share * size)
            + gpu
            + self._nic(size)
            + 2 * (self.nodes - 1) * self._inter(self.share * size)
        )

    def approach1_on_gpu(self, size: float) -> float:
        """The baseline that S compares approach 1 with: the same, the codec on the GPU."""
        return dataclasses.replace(
            self, nic_compress=self.gpu_compress, nic_decompress=self.gpu_decompress
        ).approach1(size)

    def approach2_on_gpu(self, size: float) -> float:
        """The baseline that S compares approach 2 with."""
        return dataclasses.replace(
            self, nic_compress=self.gpu_compress, nic_decompress=self.gpu_decompress
        ).approach2(size)


# ---- dataflow pipelines on an FPGA (G) --------------------------------------------------------


def processing_elements(target: float, stage_rates: Sequence[float]) -> list[int]:
    """K_i: processing elements that each stage needs so that none is slower than `target`, from the
    rate of one element of each (any unit, the same for all). G, section 3.3."""
    return [engines_for(target, rate) for rate in stage_rates]


def pipeline_rate(stage_rates: Sequence[float], elements: Sequence[int]) -> float:
    """The slowest stage's: min K_i r_i. G, section 3.3."""
    return min(rate * k for rate, k in zip(stage_rates, elements, strict=True))


def fifo_depth(produced: int, consumed: int, slack: int = 0) -> int:
    """Tokens that a queue must hold so that stages that write `produced` and read `consumed` tokens
    at a time cannot block each other: p + c - gcd(p, c), and `slack` tokens that arrive while the
    other branch of a fork still works. G, section 3.3, has the depths "tuned"; the bound is that of
    two actors of a synchronous dataflow graph (Bhattacharyya, Murthy and Lee, 1996)."""
    _require(produced >= 1 and consumed >= 1, "a stage moves at least 1 token at a time")
    _require(slack >= 0, "slack must not be negative")
    return produced + consumed - math.gcd(produced, consumed) + slack


# ---- a frame store (F) ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class FrameStore:
    """F, sections 3 and 6: a simulation that makes `frames` frames of `frame` bytes forwards and
    takes them back in reverse, `forward` and `backward` seconds of computing for each.

    `disk_write`, `disk_read`, `memory` (a copy): bytes a second. Every transfer overlaps the
    computing of the next frame (two buffers); who is slower waits."""

    frames: int
    frame: float
    forward: float
    backward: float
    disk_write: float
    disk_read: float
    memory: float = INFINITE

    def _phase(self, compute: float, transfer: float) -> tuple[float, float]:
        """(seconds, of which waiting) of all frames, the first transfer or the last not hidden."""
        each = max(compute, transfer)
        return self.frames * each + min(compute, transfer), self.frames * (each - compute)

    def in_memory(self) -> float:
        """Every frame is copied, in the way of computing."""
        return self.frames * (self.forward + self.backward + 2 * self.frame / self.memory)

    def on_disk(self) -> float:
        """Raw frames."""
        return (
            self._phase(self.forward, self.frame / self.disk_write)[0]
            + self._phase(self.backward, self.frame / self.disk_read)[0]
        )

    def compressed(self, codec: Stage, engines: int = 1) -> float:
        """By an engine beside the workers; with `engines` as many frames are coded at once."""
        return self._compressed(codec, engines)[0]

    def compressed_wait(self, codec: Stage, engines: int = 1) -> float:
        """Seconds of those that the workers wait: 0 where codec time < compute time (F, 6.3)."""
        return self._compressed(codec, engines)[1]

    def _compressed(self, codec: Stage, engines: int) -> tuple[float, float]:
        small = self.frame / codec.ratio
        write = max(self.frame / (engines * codec.compress), small / self.disk_write)
        read = max(self.frame / (engines * codec.decompress), small / self.disk_read)
        forth, back = self._phase(self.forward, write), self._phase(self.backward, read)
        return forth[0] + back[0], forth[1] + back[1]

    def compressed_by_workers(self, codec: Stage) -> float:
        """By the threads that compute, in their way (F: SZ, SW-FRE)."""
        small = self.frame / codec.ratio
        forward = self.forward + self.frame / codec.compress
        backward = self.backward + self.frame / codec.decompress
        return self.frames * (
            max(forward, small / self.disk_write) + max(backward, small / self.disk_read)
        )


def hidden(compute_rate: float, codec_rate: float) -> bool:
    """Whether a codec's time hides behind computing: it is at least as fast (F, section 6.3: the
    expander's 458.58 MB/s were not, against 733 MB/s of the backward kernel at 23 threads)."""
    return codec_rate >= compute_rate

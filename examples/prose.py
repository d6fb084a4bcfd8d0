# SPDX-License-Identifier: Apache-2.0
"""Text for trainings and measurements, the same on every machine: made from a seed.

Words have the frequencies of a language (Zipf's law), their letters come by syllables, and half of
them depend on the word before, so that there is something to learn. All arithmetic is on whole
numbers, so that no processor, compiler or version of NumPy makes another text.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

N_WORDS = 60_000
SENTENCE = 16  # words
FOLLOWERS = 4  # of each word, one of which comes next in half of all places
PARAGRAPH = 5  # sentences
CHUNK = 4096  # sentences that are made at a time


def prose(size: int, seed: int = 1) -> bytes:
    """The first `size` bytes of text number `seed`; a longer one begins with the shorter."""
    words = _spellings()
    source = np.random.PCG64(seed)
    parts: list[bytes] = []
    length = 0
    while length < size:
        parts.append(_sentences(words, _numbers(source)))
        length += len(parts[-1])
    return b"".join(parts)[:size]


def _numbers(source: np.random.PCG64) -> np.ndarray:
    """Word numbers of CHUNK sentences: CHUNK x SENTENCE. Small numbers are frequent words."""
    limits = np.cumsum(10**9 // np.arange(3, N_WORDS + 3))  # frequency of word i: 1 / (i + 3)
    drawn = source.random_raw(CHUNK * SENTENCE).reshape(SENTENCE, CHUNK) >> np.uint64(8)
    words = np.searchsorted(limits, (drawn % np.uint64(limits[-1])).astype(np.int64), "right")
    chosen = source.random_raw(CHUNK * SENTENCE).reshape(SENTENCE, CHUNK) >> np.uint64(40)
    for i in range(1, SENTENCE):
        follower = _mix(words[i - 1] * FOLLOWERS + (chosen[i] % FOLLOWERS).astype(np.int64))
        place = follower % np.uint64(limits[-1])
        common = np.searchsorted(limits, place.astype(np.int64), "right")
        words[i] = np.where(chosen[i] >> np.uint64(23), common, words[i])
    return words.T


def _mix(x: np.ndarray) -> np.ndarray:
    """A hash of whole numbers (splitmix64), 56 bits."""
    z = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(8)


@functools.cache
def _spellings() -> list[str]:
    """All different; frequent words are short."""
    starts = "b c d f g h l m n p r s t v w st th tr ch pl".split()
    vowels = "a e i o u ea ou ai".split()
    ends = ["", "", "n", "r", "s", "t", "l", "nd"]
    syllables = [a + b + c for a in starts for b in vowels for c in ends]
    short = sorted(set(syllables), key=lambda word: (len(word), word))
    words: dict[str, None] = {}
    for value in _mix(np.arange(1 << 40, (1 << 40) + 2 * N_WORDS)).tolist():
        word = ""
        for _ in range(1 + (len(words) > 200) + (len(words) > 5000)):
            value, i = divmod(value, len(short) if len(words) > 30 else 60)
            word += short[i]
        words.setdefault(word)
    return list(words)[:N_WORDS]


def _sentences(words: list[str], numbers: np.ndarray) -> bytes:
    lines = []
    for row in numbers.tolist():
        comma = row[0] % (SENTENCE - 2)
        spelled = [words[i] for i in row[: SENTENCE - row[-1] % 9]]
        spelled[0] = spelled[0].capitalize()
        if 2 <= comma < len(spelled) - 1:
            spelled[comma] += ","
        lines.append(" ".join(spelled) + ".")
    paragraphs = (" ".join(lines[i : i + PARAGRAPH]) for i in range(0, len(lines), PARAGRAPH))
    return ("\n\n".join(paragraphs) + "\n\n").encode()


if __name__ == "__main__":
    sys.stdout.buffer.write(prose(int(sys.argv[1]) if sys.argv[1:] else 1000))

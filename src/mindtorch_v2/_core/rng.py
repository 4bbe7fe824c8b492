"""The CPU's random numbers: generators of 32-bit words (MT19937) and the uniforms and normals made of them.

Seeds, states and numbers are torch's, bit for bit.
"""

from __future__ import annotations

import math
import os
import threading
from typing import Any

import numpy as np

from .box_muller import normals
from .device import device as Device
from .tensor import Tensor, make_tensor

DEFAULT_SEED = 67280421310721
_BLOCK = 624  # how many words the twister makes at once
_LARGEST_LOOKAHEAD = 32 * _BLOCK
_STATE_WORDS = 632
_CPU = Device("cpu")
_UNIT32, _UNIT64 = np.float32(2.0**-24), 2.0**-53
_BITS24, _BITS53 = np.uint32(2**24 - 1), np.uint64(2**53 - 1)


class _Words:
    """Words drawn ahead, always whole blocks of the twister, and the numbers that were computed from them so far."""

    __slots__ = ("normals", "size", "uniforms", "words")

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self.size = len(words)
        # All words as float32 in [0, 1); and for each phase the normals of the groups of 16 words that begin there.
        self.uniforms: np.ndarray | None = None
        self.normals: list[np.ndarray | None] = [None] * 16

    def make_uniforms(self) -> np.ndarray:
        uniforms = self.uniforms = to_unit32(self.words)
        return uniforms

    def make_normals(self, phase: int) -> np.ndarray:
        uniforms = self.make_uniforms() if self.uniforms is None else self.uniforms
        count = (self.size - phase) // 16 * 16
        values = self.normals[phase] = np.zeros(self.size, np.float32)
        values[phase : phase + count] = normals(uniforms[phase : phase + count])
        return values


_NOTHING = _Words(np.empty(0, np.uint32))


def to_unit32(words: np.ndarray) -> np.ndarray:
    """Words as float32 in [0, 1), 24 bits each."""
    values = (words & _BITS24).astype(np.float32)
    values *= _UNIT32
    return values


class Generator:
    """A source of random numbers: `rand(3, generator=g)`. Each generator has a state of its own."""

    __module__ = "mindtorch_v2"

    __slots__ = ("__weakref__", "_at", "_bits", "_device", "_fresh", "_lock", "_seed", "_seeded", "_words", "next_normal")

    def __init__(self, device: Any = "cpu") -> None:
        self._device = Device(device)
        if self._device.type != "cpu":
            raise RuntimeError(f"Device type {self._device.type.upper()} is not supported for torch.Generator() api.")
        # Made and seeded at the first draw: many programs draw nothing, and NumPy loads its generators at their first use.
        self._bits: np.random.MT19937 | None = None
        self._lock = threading.Lock()
        # The second of a pair of normals, kept for the next call that takes single ones.
        self.next_normal: float | None = None
        self._start(DEFAULT_SEED)

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._seeded = False
        self._words = _NOTHING
        self._at = 0
        self._fresh = True  # nothing was drawn since the seed was set
        self.next_normal = None

    def _twister(self) -> np.random.MT19937:
        """NumPy's bit generator, made and seeded at the first use."""
        bits = self._bits
        if bits is None:
            bits = self._bits = np.random.MT19937(0)
        if not self._seeded:
            bits._legacy_seeding(self._seed & 0xFFFFFFFF)  # type: ignore[attr-defined]
            self._seeded = True
        return bits

    # ------------------------------------------------------------------ what users call

    @property
    def device(self) -> Device:
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed; the numbers that follow depend on nothing else."""
        self._start(as_seed(seed))
        return self

    def seed(self) -> int:
        """Set the seed to a random number of the operating system, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._start(seed)
        return seed

    def get_offset(self) -> int:
        """RuntimeError: the CPU's generator counts no draws."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """RuntimeError: the CPU's generator counts no draws."""
        raise RuntimeError("CPU Generator does not use offset")

    def initial_seed(self) -> int:
        """The seed that was set last."""
        return self._seed

    def get_state(self) -> Tensor:
        """The whole state as bytes, in the layout of torch's CPU generator."""
        state = np.zeros(_STATE_WORDS, np.uint64)
        with self._lock:
            key, position = self._twister_state()
            state[0] = self._seed
            # `left` and `seeded`, two 32-bit numbers; then the position of the next word, and the twister's words.
            state.view(np.int32)[2:4] = (1 if position == 0 else _BLOCK - position + 1), 1
            state[2] = position
            state[3 : 3 + _BLOCK] = key
            if self.next_normal is not None:
                state.view(np.float64)[628] = self.next_normal
                state[630] = 1
        return make_tensor(state.view(np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that get_state() returned."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        array = new_state._array
        if array.dtype != np.uint8 or not new_state.is_cpu:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if array.size != _STATE_WORDS * 8:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE_WORDS * 8} but found the input RNG "
                f"state size to be {array.size}"
            )
        state = np.ascontiguousarray(array).reshape(-1).view(np.uint64)
        position = int(state[2])
        if position > _BLOCK or state.view(np.int32)[3] != 1:
            raise RuntimeError("Invalid mt19937 state")
        key = state[3 : 3 + _BLOCK].astype(np.uint32)
        with self._lock:
            self._twister().state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _BLOCK}}
            self._seed = int(state[0])
            self._fresh = position == 0
            self._words = _NOTHING if self._fresh else _Words(_tempered(key))
            self._at = 0 if self._fresh else position
            self.next_normal = float(state.view(np.float64)[628]) if state[630] else None
        return self

    def clone_state(self) -> Generator:
        """Another generator with the same state, which gives the same numbers."""
        return Generator(self._device).set_state(self.get_state())

    def graphsafe_get_state(self) -> Generator:
        raise RuntimeError("graphsafe_get_state is not supported by the CPU generator")

    def graphsafe_set_state(self, state: Generator) -> None:
        raise RuntimeError("graphsafe_set_state is not supported by the CPU generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self._device), self.get_state()._array.tobytes())

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at 0x{id(self):x}>"

    # ------------------------------------------------------------------ what random ops draw

    def words(self, count: int) -> np.ndarray:
        """The next 32-bit words, in memory that must not be written to."""
        # Reading and moving the position with no call in between cannot be interrupted by another thread.
        ahead, at = self._words, self._at
        end = at + count
        if end <= ahead.size:
            self._at = end
            return ahead.words[at:end]
        return self._draw(count)

    def words64(self, count: int) -> np.ndarray:
        """The next 64-bit words: two words each, the higher first."""
        pairs = self.words(2 * count).astype(np.uint64).reshape(count, 2)
        return (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]

    def uniforms(self, count: int) -> np.ndarray:
        """float32 numbers in [0, 1), in memory of their own."""
        ahead, at = self._words, self._at
        end = at + count
        if end <= ahead.size:
            self._at = end
            known = ahead.uniforms
            return (ahead.make_uniforms() if known is None else known)[at:end].copy()
        return to_unit32(self._draw(count))

    def uniforms64(self, count: int) -> np.ndarray:
        """float64 numbers in [0, 1), in memory of their own."""
        return (self.words64(count) & _BITS53).astype(np.float64) * _UNIT64

    def normals(self, count: int) -> np.ndarray:
        """At least 16 float32 numbers with mean 0 and deviation 1, in memory of their own.

        They come in groups of 16; where `count` is no multiple of 16, the last 16 are made again, from new words.
        """
        ahead, at = self._words, self._at
        end = at + count
        if not count & 15:
            if end > ahead.size:
                return normals(to_unit32(self._draw(count)))
            self._at = end
            known = ahead.normals[at & 15]
            if known is None:
                known = ahead.make_normals(at & 15)
            return known[at:end].copy()
        whole = count // 16 * 16
        drawn = to_unit32(self.words(count + 16))
        values = np.empty(count, np.float32)
        fresh = normals(np.concatenate((drawn[:whole], drawn[count:])))
        values[:whole] = fresh[:whole]
        values[count - 16 :] = fresh[whole:]
        return values

    def normal_pairs(self, count: int) -> np.ndarray:
        """float64 normals, computed in pairs; the second of the last pair is kept for the next call if it is not needed."""
        kept = self.next_normal
        self.next_normal = None
        first = 0 if kept is None or not count else 1
        pairs = (count - first + 1) // 2
        values = np.empty(first + 2 * pairs)
        if first:
            values[0] = kept
        if pairs:
            drawn = self.uniforms64(2 * pairs)
            radius = np.sqrt(-2 * np.log1p(-drawn[1::2]))
            angle = drawn[::2] * (2 * np.pi)
            values[first::2] = radius * np.cos(angle)
            values[first + 1 :: 2] = radius * np.sin(angle)
        if len(values) > count:
            self.next_normal = float(values[-1])
        return values[:count]

    def uniform(self) -> float:
        """The next float64 in [0, 1) alone, for samplers that cannot know how many they need."""
        high, low = self.words(2).tolist()
        return ((high << 32 | low) & 0x1FFFFFFFFFFFFF) * _UNIT64

    def normal(self) -> float:
        """The next float64 normal alone, from the same pairs as `normal_pairs`."""
        kept = self.next_normal
        if kept is not None:
            self.next_normal = None
            return kept
        angle, other = 2 * math.pi * self.uniform(), self.uniform()
        radius = math.sqrt(-2 * math.log1p(-other))
        self.next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def _draw(self, count: int) -> np.ndarray:
        """More words than are left of those drawn ahead: these, then whole new blocks, of which the last are kept."""
        with self._lock:
            ahead, at = self._words, self._at
            self._at = ahead.size  # so that no other thread takes the words that are left
            rest = ahead.words[at:]
            missing = count - len(rest)
            if missing <= 0:  # another thread has drawn meanwhile
                self._at = at + count
                return rest[:count]
            # Draw more ahead each time: a program that sets seeds often draws little, others many.
            wanted = max(missing, min(2 * ahead.size, _LARGEST_LOOKAHEAD))
            fresh = self._twister().random_raw(-(-wanted // _BLOCK) * _BLOCK).astype(np.uint32)
            kept = (missing - 1) // _BLOCK * _BLOCK
            drawn = np.concatenate((rest, fresh[:missing])) if len(rest) else fresh[:missing]
            following = _Words(fresh if kept == 0 else fresh[kept:].copy())
            self._words, self._at, self._fresh = following, missing - kept, False
            return drawn

    def _twister_state(self) -> tuple[np.ndarray, int]:
        """The twister's words for the current block, and how many of them were drawn."""
        if self._fresh:
            return self._twister().state["state"]["key"], 0  # type: ignore[index]
        first = (self._at - 1) // _BLOCK * _BLOCK
        return _untempered(self._words.words[first : first + _BLOCK]), self._at - first


def as_seed(seed: Any) -> int:
    """A seed as an unsigned 64-bit number; a negative one modulo 2**64, as in torch."""
    if isinstance(seed, Tensor):
        seed = seed._array.item()
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    number = int(seed)
    if not -(2**63) <= number < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return number % 2**64


def _restored(device: str, state: bytes) -> Generator:
    return Generator(device).set_state(make_tensor(np.frombuffer(state, np.uint8).copy()))


def _tempered(key: np.ndarray) -> np.ndarray:
    """The words that a block of the twister's state yields."""
    words = key ^ (key >> np.uint32(11))
    words ^= (words << np.uint32(7)) & np.uint32(0x9D2C5680)
    words ^= (words << np.uint32(15)) & np.uint32(0xEFC60000)
    return words ^ (words >> np.uint32(18))


def _untempered(words: np.ndarray) -> np.ndarray:
    """The block of state that yielded `words`: each step of the tempering undone, last first."""
    key = words ^ (words >> np.uint32(18))
    key ^= (key << np.uint32(15)) & np.uint32(0xEFC60000)
    undone = key
    for _ in range(4):  # seven more bits are right each time
        undone = key ^ ((undone << np.uint32(7)) & np.uint32(0x9D2C5680))
    key = undone
    for _ in range(2):
        undone = key ^ (undone >> np.uint32(11))
    return undone


default_generator = Generator()
"""The generator of random functions that are called without one."""

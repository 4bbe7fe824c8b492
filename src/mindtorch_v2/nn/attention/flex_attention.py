"""flex_attention: attention with a function of the scores and a mask by blocks.

The functions are written for one score and its place. They are called once, with all scores and the places as index tensors
that broadcast against them, which is the same for functions made of elementwise ops and lookups.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

from ... import _surface as torch
from ..._core.tensor import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreMod = Callable[[Any, Any, Any, Any, Any], Any]
MaskMod = Callable[[Any, Any, Any, Any], Any]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(TypedDict, total=False):
    """Choices of a compiled kernel, which there is none of here."""

    BACKEND: str
    BLOCK_M: int
    BLOCK_N: int
    num_stages: int
    num_warps: int


class AuxRequest(NamedTuple):
    """What to return beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for beside the result."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ---------------------------------------------------------------- functions of places


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that allows all places."""
    return torch.ones((), dtype=torch.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The places that all masks allow."""
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = torch.ones((), dtype=torch.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The places that one of the masks allows."""
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = torch.zeros((), dtype=torch.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _places(shape: Sequence[int], device: Any) -> list[Tensor]:
    """The index along each of the four dims, to broadcast against scores."""
    places = []
    for dim, size in enumerate(shape):
        along = [1] * 4
        along[dim] = size
        places.append(torch.arange(size, dtype=torch.int32, device=device).reshape(along))
    return places


def create_mask(
    mod_fn: ScoreMod | MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """All places as a bool tensor of shape [B, H, Q_LEN, KV_LEN]. A function of scores allows those it leaves above -inf."""
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _places(shape, device)
    if _takes_scores(mod_fn):
        scores = mod_fn(torch.zeros(shape, device=device), *places)
        return torch.where(torch.isneginf(scores), False, True).expand(shape).contiguous()
    return mod_fn(*places).expand(shape).contiguous()


def _takes_scores(function: Any) -> bool:
    required = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional arguments, got {len(required)}")
    return len(required) == 5


# ---------------------------------------------------------------- masks by blocks


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """(how many blocks of each row are set, their columns first and the others after them)."""
    counts = dense.sum(dim=-1)
    columns = torch.argsort(dense, dim=-1, descending=True, stable=True)
    return counts.to(torch.int32), columns.to(torch.int32)


def _dense(counts: Tensor, columns: Tensor) -> Tensor:
    """The blocks of each row as 0 and 1."""
    width = columns.shape[-1]
    used = torch.arange(width).expand(columns.shape) < counts.unsqueeze(-1)
    return torch.zeros(columns.shape, dtype=torch.int32).scatter(-1, columns.long(), used.to(torch.int32))


class BlockMask:
    """A mask by blocks: for each row of blocks the columns that are allowed in part (`kv_indices`) or all (`full_kv_indices`).

    `mask_mod` says which places of a block are allowed. `q_...` is the same by column.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: MaskMod,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    _TENSORS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    )

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from its rows; the columns are worked out."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        partial: tuple[Tensor | None, Tensor | None] = (None, None)
        full: tuple[Tensor | None, Tensor | None] = (None, None)
        if compute_q_blocks:
            partial = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *partial,
            *full,
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All parts in order."""
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (*lengths, *[getattr(self, name) for name in self._TENSORS], *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, and the lengths of both sequences."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many places there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the places are in blocks that are left out."""
        computed = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            computed += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - computed * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """The blocks that are allowed, partly or wholly, as 0 and 1."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks."""
        parts = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(part, part + 1 or None) if isinstance(part, int) else part for part in parts)

        def taken(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor[kept]

        counts, columns = self.kv_num_blocks[kept], self.kv_indices[kept]
        return BlockMask.from_kv_blocks(
            counts,
            columns,
            taken(self.full_kv_num_blocks),
            taken(self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=None,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The same mask for shorter sequences."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def shorter(counts: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
            if counts is None or indices is None:
                return None, None
            return _ordered(_dense(counts, indices)[..., :rows, :columns])

        counts, indices = shorter(self.kv_num_blocks, self.kv_indices)
        full_counts, full_indices = shorter(self.full_kv_num_blocks, self.full_kv_indices)
        assert counts is not None and indices is not None
        return BlockMask.from_kv_blocks(
            counts,
            indices,
            full_counts,
            full_indices,
            self.BLOCK_SIZE,
            self.mask_mod,
            (new_q_len, new_kv_len),
            self.q_indices is not None,
        )

    def to(self, device: Any) -> BlockMask:
        """The same mask on a device."""
        parts = {name: getattr(self, name) for name in self._TENSORS}
        moved: dict[str, Any] = {name: None if value is None else value.to(device) for name, value in parts.items()}
        return BlockMask(self.seq_lengths, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, **moved)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """The blocks as characters: full, partly full and empty."""
        dense = self.to_dense()
        rows, columns = dense.shape[-2:]
        height, width = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        step_down = 1 if height == -1 else max(1, -(-rows // height))
        step_right = 1 if width == -1 else max(1, -(-columns // width))
        texts = []
        flat = dense.reshape(-1, rows, columns).tolist()
        lead = dense.shape[:-2]
        for number, block in enumerate(flat[:limit]):
            index = tuple(number // math.prod(lead[i + 1 :]) % lead[i] for i in range(len(lead)))
            lines = []
            for top in range(0, rows, step_down):
                marks = []
                for left in range(0, columns, step_right):
                    cells = [cell for row in block[top : top + step_down] for cell in row[left : left + step_right]]
                    share = sum(cells) / len(cells)
                    marks.append("██" if share == 1 else "░░" if share else "  ")
                lines.append("".join(marks))
            texts.append(f"{index}\n" + "\n".join(lines))
        if len(flat) > limit:
            texts.append(f"To print out more, set BlockMask.to_string(limit=N), of {len(flat)} masks {limit} are shown")
        return "\n".join(texts)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    def __repr__(self) -> str:
        parts = [
            f"    {name}={None if value is None else value.shape}"
            for name, value in ((name, getattr(self, name)) for name in self._TENSORS)
        ]
        parts += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE}",
            f"    shape={self.shape}",
            f"    sparsity={self.sparsity():.2f}%",
            f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}",
        ]
        return "BlockMask(\n" + ",\n".join(parts) + "\n)"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The blocks of a mask. With None for B or H the mask is the same for all of them. `_compile` changes no result."""
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    whole = torch.zeros((*mask.shape[:2], rows * size[0], columns * size[1]), dtype=torch.bool, device=device)
    whole[:, :, :Q_LEN, :KV_LEN] = mask
    allowed = whole.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum(dim=(3, 5))
    full = allowed == size[0] * size[1]
    some = allowed > 0
    partly = some & ~full if separate_full_blocks else some
    counts, indices = _ordered(partly.to(torch.int32))
    full_counts, full_indices = _ordered(full.to(torch.int32)) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        counts, indices, full_counts, full_indices, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


# ---------------------------------------------------------------- attention


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, key_heads = query.size(1), key.size(1)
    if not enable_gqa and heads != key_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={key_heads}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % key_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key_heads}."
        )
    if block_mask is not None:
        queries, keys = block_mask.shape[-2:]
        if (queries, keys) != (query.size(-2), key.size(-2)):
            hint = (
                " As the block mask was created for a larger length than you're using it for, you can either 1. create a new "
                "block mask with the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
                "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, which "
                "does not work for all mask_mods!"
                if queries > query.size(-2) and keys >= key.size(-2)
                else ""
            )
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and "
                f"kv_len={key.size(-2)}.{hint}"
            )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention of `query` to `key` and `value`, with `score_mod(score, batch, head, query, key)` applied to each score.

    With `return_lse` also the logarithm of the sum of each row's exponentials; `return_aux` asks for that as well. Queries
    whose keys are all masked give zeros. `kernel_options` are those of a compiled kernel and change no result.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_aux is not None and return_lse:
        raise ValueError("return_lse and return_aux cannot both be specified; return_aux alone is enough")
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")
    if enable_gqa:
        groups = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    precision = torch.float64 if query.dtype is torch.float64 else torch.float32
    scores = (query @ key.to(query.dtype).transpose(-2, -1)).to(precision) * factor
    places = _places(scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        scores = torch.where(block_mask.mask_mod(*places), scores, float("-inf"))
    lse = torch.logsumexp(scores, dim=-1)
    # A row without any key: its sum is 0, and its weights are to be 0 and not 0 / 0.
    weights = torch.exp(scores - torch.where(lse == float("-inf"), 0.0, lse).unsqueeze(-1))
    result = (weights.to(query.dtype) @ value.to(query.dtype)).to(query.dtype)
    if return_aux is not None:
        return result, AuxOutput(lse=lse if return_aux.lse else None)
    return (result, lse) if return_lse else result

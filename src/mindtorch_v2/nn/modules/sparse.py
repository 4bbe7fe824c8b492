"""Embedding tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..._autograd.grad_mode import no_grad
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .. import init
from .._functional import sparse as F
from ..parameter import Parameter
from .module import Module

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["Embedding", "EmbeddingBag"]


def _checked_padding(name: str, padding_idx: int | None, num_embeddings: int) -> int | None:
    """The padding row counted from the front."""
    if padding_idx is None:
        return None
    if (padding_idx >= num_embeddings and padding_idx > 0) or padding_idx < -num_embeddings:
        raise AssertionError(f"{name} must be within num_embeddings")
    return num_embeddings + padding_idx if padding_idx < 0 else padding_idx


class _Table(Module):
    """A table with one row per index, and the options of looking rows up."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool

    def _set_weight(self, given: Any, device: Any, dtype: Any, *, frozen: bool = False) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = Parameter(aten.empty(shape, device=device, dtype=dtype), requires_grad=not frozen)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(given, requires_grad=not frozen)

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                aten.fill_(self.weight[self.padding_idx], 0)

    def _shown_options(self) -> list[str]:
        shown = [str(self.num_embeddings), str(self.embedding_dim)]
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            shown.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            shown.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            shown.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return shown


class Embedding(_Table):
    """Looks up rows of a table by their indices."""

    __constants__: ClassVar[list[str]] = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _checked_padding("Padding_idx", padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_weight(_weight, device, dtype, frozen=_freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        return ", ".join(self._shown_options() + ["sparse=True"] * bool(self.sparse))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding around a given table, which is not trained if `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(rows, cols, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows."""

    __constants__: ClassVar[list[str]] = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _checked_padding("padding_idx", padding_idx, num_embeddings)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._set_weight(_weight, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        padding = [] if self.padding_idx is None else [f"padding_idx={self.padding_idx}"]
        shown = [option for option in self._shown_options() if not option.startswith("padding_idx")]
        return ", ".join([*shown, f"mode={self.mode!r}", *padding])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag around a given table, which is not trained if `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        embedding = cls(
            rows,
            cols,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        embedding.weight.requires_grad = not freeze
        return embedding

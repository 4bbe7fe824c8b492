"""Softmax over very many classes: frequent ones first, rare ones in clusters of smaller dimension."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._functional.activation import log_softmax
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of targets, and their mean loss, with `cutoffs` between the clusters."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail: Any = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, size, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        dims = target_.dim()
        if dims == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with size", input_.size())
        elif dims == 0:
            if input_.dim() != 1:
                raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with size", input_.size())
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if dims > 0 else aten.unsqueeze(input_, 0)
        target = target_ if dims > 0 else aten.unsqueeze(target_, 0)
        output, seen = self._target_log_probs(input, target)
        if seen != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        loss = aten.mean(aten.neg(output))
        return _ASMoutput(output if dims > 0 else aten.squeeze(output, 0), loss)

    def _target_log_probs(self, input: Any, target: Any) -> tuple[Any, int]:
        """The log-probability of each sample's target, and how many targets were valid."""
        output = aten.new_zeros(input, (target.size(0),))
        gather_inds = aten.new_empty(target, (target.size(0),))
        seen = 0
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            low, high = bounds[i], bounds[i + 1]
            mask = (target >= low) & (target < high)
            rows = aten.squeeze(mask.nonzero())
            if rows.numel() == 0:
                continue
            if i == 0:
                aten.index_copy_(gather_inds, 0, rows, target[mask])
            else:
                relative = target[mask] - low
                cluster = self.tail[i - 1](aten.index_select(input, 0, rows))
                aten.index_fill_(gather_inds, 0, rows, self.shortlist_size + i - 1)
                local = aten.gather(log_softmax(cluster, dim=1), 1, aten.unsqueeze(relative, 1))
                aten.index_copy_(output, 0, rows, aten.squeeze(local, 1))
            seen += rows.numel()
        if seen == target.size(0):
            head = log_softmax(self.head(input), dim=1)
            output = output + aten.squeeze(aten.gather(head, 1, aten.unsqueeze(gather_inds, 1)))
        return output, seen

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        """Log-probabilities of all classes, given the head's output."""
        out = aten.new_empty(input, (head_output.size(0), self.n_classes))
        head = log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            cluster = log_softmax(self.tail[i](input), dim=1)
            out[:, start:stop] = cluster + aten.unsqueeze(head[:, self.shortlist_size + i], 1)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Tensor:
        """The most probable class of each sample; the tails are looked at only where the head points to them."""
        head_output = self.head(input)
        output = aten.argmax(head_output, dim=1)
        in_tail = output >= self.shortlist_size
        if not bool(in_tail.any()):
            return output
        if bool(in_tail.all()):
            return aten.argmax(self._get_full_log_prob(input, head_output), dim=1)
        log_prob = self._get_full_log_prob(input[in_tail], head_output[in_tail])
        output[in_tail] = aten.argmax(log_prob, dim=1)
        return output

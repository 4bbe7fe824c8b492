"""Loss functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._reduction import chosen, get_enum

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

Flag = bool | None


def _warn_of_broadcast(input: Tensor, target: Tensor, stacklevel: int = 3) -> None:
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This "
        "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=stacklevel,
    )


def _reduce_weighted(loss: Any, weight: Any, reduction: str) -> Any:
    """Weigh a loss per element; the mean is over the weights, too."""
    if weight.size() != loss.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = aten.mul(loss, weight)
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return aten.sum(weighted)
    if reduction == "mean":
        return aten.div(aten.sum(weighted), aten.sum(weight))
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


# ---------------------------------------------------------------- distances to a target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference."""
    if target._array.shape != input._array.shape:
        _warn_of_broadcast(input, target)
    number = chosen(reduction, size_average, reduce)
    input, target = aten.broadcast_tensors((input, target))
    if weight is not None:
        return _reduce_weighted(aten.pow(aten.sub(input, target), 2), weight, reduction)
    return aten.mse_loss(input, target, number)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference."""
    if target._array.shape != input._array.shape:
        _warn_of_broadcast(input, target)
    number = chosen(reduction, size_average, reduce)
    input, target = aten.broadcast_tensors((input, target))
    if weight is not None:
        return _reduce_weighted(aten.abs(aten.sub(input, target)), weight, reduction)
    return aten.l1_loss(input, target, number)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Squared below `beta`, absolute above."""
    if target._array.shape != input._array.shape:
        _warn_of_broadcast(input, target)
    number = chosen(reduction, size_average, reduce)
    input, target = aten.broadcast_tensors((input, target))
    if beta == 0.0:
        return aten.l1_loss(input, target, number)
    return aten.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squared below `delta`, absolute above, scaled by `delta`."""
    if target._array.shape != input._array.shape:
        _warn_of_broadcast(input, target)
    input, target = aten.broadcast_tensors((input, target))
    if weight is not None:
        return _reduce_weighted(aten.huber_loss(input, target, 0, delta), weight, reduction)
    return aten.huber_loss(input, target, get_enum(reduction), delta)


# ---------------------------------------------------------------- classification


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability that `input` gives to the target class."""
    return aten.nll_loss_nd(input, target, weight, chosen(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy between logits and class indices, or class probabilities."""
    number = chosen(reduction, size_average, reduce)
    return aten.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Any = None, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy between probabilities and targets in [0, 1]."""
    number = chosen(reduction, size_average, reduce)
    if target._array.shape != input._array.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) "
            "is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = aten.expand(weight, _broadcast_shape(target.shape, weight.shape))
    return aten.binary_cross_entropy(input, target, weight, number)


def _broadcast_shape(a: Any, b: Any) -> tuple[int, ...]:
    length = max(len(a), len(b))
    pairs = zip((1,) * (length - len(a)) + tuple(a), (1,) * (length - len(b)) + tuple(b), strict=True)
    return tuple(n if m == 1 else m for m, n in pairs)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), computed without overflow."""
    number = chosen(reduction, size_average, reduce)
    if target._array.shape != input._array.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge loss over several classes."""
    number = chosen(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return aten.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Hinge loss over several classes of which several may be right."""
    return aten.multilabel_margin_loss(input, target, chosen(reduction, size_average, reduce))


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input))."""
    return aten.soft_margin_loss(input, target, chosen(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Any:
    """Binary cross entropy of each class, averaged over the classes."""
    number = chosen(reduction, size_average, reduce)
    loss: Any = -(target * aten.log_sigmoid(input) + (1 - target) * aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    class_dim = input.dim() - 1
    count = input.size(class_dim)
    loss = aten.div(aten.sum(loss, class_dim), count)
    return loss if number == 0 else aten.mean(loss) if number == 1 else aten.sum(loss)


# ---------------------------------------------------------------- likelihoods


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback-Leibler divergence; `input` holds log-probabilities."""
    if size_average is not None or reduce is not None:
        number = chosen(reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size. "
                "'batchmean' divides only by the batch size, and aligns with the KL div math definition. "
                "'mean' will be changed to behave the same as 'batchmean' in the next major "
                "release.",
                stacklevel=2,
            )
        number = 2 if reduction == "batchmean" else get_enum(reduction)
    reduced = aten.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        reduced = aten.div(reduced, input.size()[0])
    return reduced


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag = None,
    eps: float = 1e-8,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of Poisson-distributed targets."""
    return aten.poisson_nll_loss(input, target, log_input, full, eps, chosen(reduction, size_average, reduce))


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """Negative log likelihood of targets that are normally distributed with the given means and variances."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * aten.ones_like(input)
    elif bool(aten.any(aten.lt(var, 0))):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = aten.unsqueeze(var, -1)  # one variance per row
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            differing = [y for x, y in zip(input.size(), var.size(), strict=False) if x != y]
            if not (input.ndim == var.ndim and sum(differing) == 1):
                raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = aten.clone(var)
    with no_grad():
        aten.clamp_(var, min=eps)
    loss = 0.5 * (aten.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return aten.mean(loss) if reduction == "mean" else aten.sum(loss) if reduction == "sum" else loss


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification."""
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity)


# ---------------------------------------------------------------- embeddings


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    return aten.hinge_embedding_loss(input, target, margin, chosen(reduction, size_average, reduce))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Pulls pairs with target 1 together and pushes pairs with target -1 apart, by their cosine."""
    return aten.cosine_embedding_loss(input1, input2, target, margin, chosen(reduction, size_average, reduce))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    number = chosen(reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return aten.margin_ranking_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    number = chosen(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """triplet_margin_loss with any distance."""
    number = get_enum(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = aten.pairwise_distance if distance_function is None else distance_function
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D "
            "inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum(far, distance(positive, negative))
    loss = aten.clamp_min(margin + near - far, 0)
    return aten.mean(loss) if number == 1 else aten.sum(loss) if number == 2 else loss

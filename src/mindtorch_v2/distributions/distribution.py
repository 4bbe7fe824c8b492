"""Distribution: the interface of all distributions, with the checks of parameters and values."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _surface as _torch
from .._autograd.backward import grad
from .._autograd.grad_mode import no_grad
from .._core.size import Size
from .._core.tensor import Tensor
from . import constraints
from .utils import lazy_property

torch: Any = _torch
_HOME = __name__.rpartition(".")[0]


class Distribution:
    """`batch_shape` are independent distributions, `event_shape` the shape of one draw of each."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: dict[str, Any] = {}
    # Tensors that belong to all distributions of the batch, and do not expand with it.
    _shared_parameters: tuple[str, ...] = ()
    _validate_args = __debug__

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            if "arg_constraints" not in {
                name for kind in type(self).__mro__ if kind is not Distribution for name in vars(kind)
            }:
                warnings.warn(
                    f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                    "distribution with `validate_args=False` to turn off validation.",
                    stacklevel=2,
                )
            for name, constraint in self.arg_constraints.items():
                if constraints.is_dependent(constraint):
                    continue
                if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                    continue  # computed from another parameter, which is checked
                value = getattr(self, name)
                if not bool(constraint.check(value).all()):
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                        f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                        f"values:\n{value}"
                    )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked unless a distribution says otherwise."""
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """How many independent distributions this holds, as a shape."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw; `()` for numbers."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """The constraint that all values satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The expected value, of the shape `batch_shape + event_shape`."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value; NaN where there is no single one."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The expected squared distance from the mean, by element."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its parameters expanded."""
        shape = Size(batch_shape)
        expanded = self.__class__.__new__(self.__class__) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        # Cached forms of the parameters are dropped where the class computes them.
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor) and name not in self._shared_parameters:
                tail = tuple(value.shape[len(self._batch_shape) :])
                expanded.__dict__[name] = value.expand(shape + Size(tail))
            elif isinstance(value, Distribution):
                expanded.__dict__[name] = value.expand(shape)
        expanded._batch_shape = shape
        return expanded

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The object that `expand` fills: a subclass with another constructor must give one."""
        own = next(kind for kind in type(self).__mro__ if "__init__" in vars(kind))
        if _instance is None and own is not cls and not own.__module__.startswith(_HOME):
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw of the shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients reach the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Torch's older name of `sample((n,))`; warns."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, of a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value up to which there is this probability."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The expected -log_prob, in nats, for each distribution of the batch."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """exp(entropy): the number of equally likely values that would be as uncertain."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """ValueError unless a value has a fitting shape and lies in the support."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = tuple(self._event_shape)
        if event and tuple(value.shape[value.ndim - len(event) :]) != event:
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        expected = tuple(self._batch_shape) + event
        for i, j in zip(reversed(tuple(value.shape)), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(expected)}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names]
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Distributions whose log density is linear in some statistics; entropies come from their log-normalizers.

    Subclasses have `_natural_params`, `_log_normalizer(*natural_params)` and `_mean_carrier_measure`.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        result = -self._mean_carrier_measure
        natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        gradients = grad(normalizer.sum(), natural, create_graph=True)
        result = result + normalizer
        for parameter, gradient in zip(natural, gradients, strict=True):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result

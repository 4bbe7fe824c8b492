"""torch._dynamo.exc: errors of the compiler, for `except` clauses. Nothing is compiled: only `torch.while_loop` raises one."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "RecompileError",
    "ResetRequired",
    "TorchDynamoException",
    "TorchRuntimeError",
    "UncapturedHigherOrderOpError",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """An error of the compiler."""


class InternalTorchDynamoError(TorchDynamoException):
    """The compiler is at fault."""


class ResetRequired(TorchDynamoException):
    """Compiled code has to be forgotten first."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend could not compile a graph."""


class InvalidBackend(TorchDynamoException):
    """There is no backend of that name."""


class Unsupported(TorchDynamoException):
    """Code that cannot be captured as one graph."""


class RecompileError(TorchDynamoException):
    """Code would have to be compiled anew."""


class TorchRuntimeError(TorchDynamoException):
    """An op failed on fake tensors."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """An op that takes functions was given ones that it cannot run."""


class UserError(TorchDynamoException):
    """The program is at fault."""

"""Running a program, statement by statement, on a module that is `torch`."""

from __future__ import annotations

import operator
import random
import warnings
from contextlib import nullcontext
from typing import Any

Statement = dict[str, Any]
Outcome = dict[str, Any]

FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")

# Forms of a statement after which tensors made earlier may be other than before.
CHANGING = frozenset({"inplace", "out", "set", "backward", "inplace_operator"})


class Absent(Exception):
    """A statement uses a tensor that was not made, as the statement before it failed."""


def numbers(seed: int, count: int, dtype: str, style: str) -> list[Any]:
    """The values of an input: the same on every machine, few digits, most of them distinct."""
    chance = random.Random(seed)
    if style.startswith("below "):
        return [chance.randrange(int(style[6:])) for _ in range(count)]
    if dtype == "bool":
        return [chance.random() < 0.5 for _ in range(count)]
    if dtype in INTEGERS:
        low = 0 if dtype == "uint8" else -6
        return [chance.randrange(low, 12) for _ in range(count)]
    if style == "special":
        pool = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, 1e4, -1e-4]
        made = [chance.choice(pool) for _ in range(count)]
    else:
        made = [chance.randrange(-24, 25) / 8 for _ in range(count)]
    if dtype in COMPLEX:
        return [complex(one, chance.randrange(-8, 9) / 4) for one in made]
    return made


class Machine:
    """Runs statements and tells what each came to.

    Tensors are kept under labels: the statement's id, for results of several tensors followed by a dot and a number. All stay
    alive until the program ends, so that storages can be told apart by their address.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensors: dict[str, Any] = {}
        self.known: dict[str, list[Any]] = {}
        # Of each tensor when it was made: how often a fresh result was written is nobody's business.
        self.versions: dict[str, int] = {}

    # -------------------------------------------------------------- statements

    def run(self, statement: Statement) -> Outcome:
        """Carry out a statement; what came of it as plain data."""
        torch = self.torch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with torch.no_grad() if statement.get("no_grad") else nullcontext():
                    result = getattr(self, "do_" + statement["do"])(statement)
            outcome: Outcome = {"results": self.keep(str(statement["id"]), result)}
        except Absent:
            return {"absent": True}
        except Exception as error:
            outcome = {"error": [type(error).__name__, str(error)[:300]]}
        if statement["do"] in CHANGING:
            outcome["changed"] = self.changes()
        return outcome

    def finish(self) -> dict[str, Any]:
        """What is left behind: the gradients of all leaves."""
        found = {}
        for label, tensor in self.tensors.items():
            if leaf(tensor) is True and tensor.grad is not None:
                grad = tensor.grad
                found[label] = [self.dtype(grad), list(grad.shape), grad.requires_grad, values(grad)]
        return found

    def do_input(self, statement: Statement) -> Any:
        torch, dtype, shape = self.torch, statement["dtype"], statement["shape"]
        layout = statement.get("layout", "plain")
        base, arrange = arranged(shape, layout)
        count = 1
        for size in base:
            count *= size
        data = numbers(statement.get("seed", 0), count, dtype, statement.get("style", "plain"))
        # Cloned, so that only an input with a layout of its own is a view.
        tensor = arrange(torch.tensor(data, dtype=getattr(torch, dtype)).reshape(base).clone())
        return tensor.requires_grad_() if statement.get("grad") else tensor

    def do_call(self, statement: Statement) -> Any:
        function = self.torch
        for part in statement["name"].split("."):
            function = getattr(function, part)
        return function(*self.arguments(statement), **self.keywords(statement))

    do_out = do_call

    def do_method(self, statement: Statement) -> Any:
        first, *others = self.arguments(statement)
        return getattr(first, statement["name"])(*others, **self.keywords(statement))

    do_inplace = do_method

    def do_attribute(self, statement: Statement) -> Any:
        return getattr(self.arguments(statement)[0], statement["name"])

    def do_operator(self, statement: Statement) -> Any:
        return getattr(operator, statement["name"])(*self.arguments(statement))

    do_inplace_operator = do_operator

    def do_get(self, statement: Statement) -> Any:
        tensor, index = self.arguments(statement)
        return tensor[index]

    def do_set(self, statement: Statement) -> None:
        tensor, index, value = self.arguments(statement)
        tensor[index] = value

    def do_backward(self, statement: Statement) -> None:
        (tensor,) = self.arguments(statement)
        tensor.backward(self.weights(tensor), **self.keywords(statement))

    def do_grad(self, statement: Statement) -> Any:
        result, inputs = self.arguments(statement)
        return self.torch.autograd.grad(result, inputs, self.weights(result), **self.keywords(statement))

    def do_hook(self, statement: Statement) -> None:
        tensor, factor = self.arguments(statement)
        tensor.register_hook(lambda grad: grad * factor)

    def weights(self, tensor: Any) -> Any:
        """What a result's elements count in a gradient: not all the same."""
        data = [(at % 5 - 2) / 2 + 0.25 for at in range(tensor.numel())]
        return self.torch.tensor(data, dtype=tensor.dtype).reshape(tensor.shape)

    # -------------------------------------------------------------- arguments

    def arguments(self, statement: Statement) -> list[Any]:
        return [self.value(one) for one in statement["args"]]

    def keywords(self, statement: Statement) -> dict[str, Any]:
        return {key: self.value(one) for key, one in statement.get("kwargs", {}).items()}

    def value(self, argument: Any) -> Any:
        """An argument: lists and numbers as they are, everything else is a dictionary with one key."""
        if isinstance(argument, list):
            return [self.value(one) for one in argument]
        if not isinstance(argument, dict):
            return argument
        ((kind, content),) = argument.items()
        match kind:
            case "tensor":
                if content not in self.tensors:
                    raise Absent
                return self.tensors[content]
            case "torch":  # a dtype or a memory format
                return getattr(self.torch, content)
            case "complex":
                return complex(*content)
            case "slice":
                return slice(*content)
            case "tuple":
                return tuple(self.value(one) for one in content)
            case "dots":
                return Ellipsis
        raise ValueError(kind)

    # -------------------------------------------------------------- results

    def keep(self, label: str, result: Any) -> Any:
        """Give the tensors of a result their labels; the result as plain data."""
        if isinstance(result, self.torch.Tensor):
            for earlier, tensor in self.tensors.items():
                if tensor is result:
                    self.tensors[label] = result
                    return {"is": earlier}
            self.versions[label] = result._version
            described = self.describe(result, label)
            self.tensors[label] = result
            self.known[label] = described
            return {"tensor": described}
        if isinstance(result, list | tuple):
            return [self.keep(f"{label}.{at}", one) for at, one in enumerate(result)]
        if result is None or isinstance(result, bool | int | str):
            return {"plain": result}
        if isinstance(result, float):
            return {"float": result}
        return {"text": f"{type(result).__name__} {result}"}

    def describe(self, tensor: Any, own: str) -> list[Any]:
        """All that is compared of the tensor with label `own`: PARTS of compare.py, in this order."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr() if tensor.numel() else None
        shares = base = None
        root = tensor._base
        for label, other in self.tensors.items():
            if label == own:
                break  # it shares with those made before it
            if other is root:
                base = label
            if shares is None and address is not None and other.untyped_storage().data_ptr() == address:
                shares = label
        if root is not None and base is None:
            base = "?"
        return [
            self.dtype(tensor),
            list(tensor.shape),
            list(tensor.stride()),
            tensor.requires_grad,
            leaf(tensor),
            shares,
            base,
            tensor._version - self.versions[own],
            values(tensor),
        ]

    def changes(self) -> dict[str, list[Any]]:
        """The tensors made earlier that are not what they were."""
        found = {}
        for label, before in self.known.items():
            now = self.describe(self.tensors[label], label)
            if str(now) != str(before):
                found[label] = self.known[label] = now
        return found

    @staticmethod
    def dtype(tensor: Any) -> str:
        return str(tensor.dtype).rpartition(".")[2]


def leaf(tensor: Any) -> Any:
    """Whether a tensor is a leaf; asking raises for some views whose base was changed."""
    try:
        return tensor.is_leaf
    except RuntimeError as error:
        return type(error).__name__


def values(tensor: Any) -> list[Any]:
    """The elements in order; complex ones as two numbers each."""
    flat = tensor.detach().reshape(-1).tolist()
    if tensor.is_complex():
        return [part for one in flat for part in (one.real, one.imag)]
    return flat


def arranged(shape: list[int], layout: str) -> tuple[list[int], Any]:
    """(shape to fill, what makes a tensor of `shape` of it) for inputs that do not lie in memory in order."""
    dims = len(shape)
    if not dims or layout == "plain":
        return shape, lambda one: one
    if layout == "reversed":
        order = list(range(dims))[::-1]
        return [shape[at] for at in order], lambda one: one.permute(order)
    if layout == "rotated":
        order = [dims - 1, *range(dims - 1)]
        back = [*range(1, dims), 0]
        return [shape[at] for at in order], lambda one: one.permute(back)
    if layout == "expanded":
        return [1, *shape[1:]], lambda one: one.expand(shape)
    if layout == "expanded last":
        return [*shape[:-1], 1], lambda one: one.expand(shape)
    if layout == "every second":
        return [*shape[:-1], shape[-1] * 2], lambda one: one[..., ::2]
    if layout == "offset":
        return [shape[0] + 1, *shape[1:]], lambda one: one[1:]
    raise ValueError(layout)


LAYOUTS = ("reversed", "rotated", "expanded", "expanded last", "every second", "offset")


def run_program(torch: Any, program: list[Statement]) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of all statements, and the gradients at the end."""
    machine = Machine(torch)
    return [machine.run(statement) for statement in program], machine.finish()

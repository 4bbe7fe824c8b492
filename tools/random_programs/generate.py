"""Making programs: statements with arguments that mostly fit, as the maker runs each statement before it chooses the next."""

from __future__ import annotations

import math
import random
from typing import Any

from .machine import CHANGING, COMPLEX, FLOATS, LAYOUTS, Machine, Outcome, Statement, leaf
from .table import OPS, WEIGHTS, Op

DTYPES = ["float32"] * 8 + ["float64"] * 5 + ["int64"] * 3 + ["float16", "bfloat16", "complex64", "bool", "int32"] * 2
DTYPES += ["complex128", "uint8", "int8", "int16"]
SIZES = [0] + [1] * 4 + [2] * 8 + [3] * 6 + [4]
LARGEST = 48  # elements; tensors with more are not taken further
EQUATIONS = [
    "i,i->", "i,i->i", "i,j->ij", "ij,j->i", "ij,jk->ik", "ij,jk", "ij->ji", "ij->", "ij->i", "ii->", "ii->i",
    "bij,bjk->bik", "ij,ij->ij", "ij,ij->", "...i,...i->...", "i...->...", "...ij->...ji", "ij,kj->ik", "bij,jk->bik",
    "i,ij,j->", "ij,ij->j", "i,i,i->i",
]  # fmt: skip


class Maker:
    """Makes one program; every choice comes from a seed."""

    def __init__(self, torch: Any, seed: str) -> None:
        self.chance = random.Random(seed)
        self.machine = Machine(torch)
        self.program: list[Statement] = []
        self.outcomes: list[Outcome] = []
        # Shapes and dtypes of a program are akin, or hardly anything would fit together.
        self.shape = self.some_shape()
        self.dtype = self.chance.choice(DTYPES)
        self.with_grad = self.chance.random() < 0.5

    def some_shape(self) -> list[int]:
        dims = self.chance.choices([0, 1, 2, 3, 4], [2, 6, 8, 4, 1])[0]
        return [self.chance.choice(SIZES) for _ in range(dims)]

    # -------------------------------------------------------------- the program

    def make(self) -> tuple[list[Statement], list[Outcome], dict[str, Any]]:
        """The program, what each statement came to, and the gradients at the end."""
        for _ in range(self.chance.choice([1, 1, 2, 2, 3])):
            self.input(self.shape if self.chance.random() < 0.7 else self.related(self.shape))
        for _ in range(self.chance.randint(1, 8)):
            roll = self.chance.random()
            if roll < 0.09:
                self.get()
            elif roll < 0.16:
                self.set()
            elif roll < 0.19 and self.with_grad:
                self.hook()
            elif roll < 0.25 and self.with_grad:
                self.grad()
            elif roll < 0.27 and self.with_grad:
                self.backward()
            else:
                self.op(self.chance.choices(OPS, WEIGHTS)[0])
        if self.with_grad:
            for _ in range(self.chance.choice([1, 1, 1, 2])):
                self.chance.choice([self.grad, self.backward, self.backward])()
        return self.program, self.outcomes, self.machine.finish()

    def add(self, do: str, **content: Any) -> str:
        """Append a statement and run it; its label."""
        statement = {"id": len(self.program), "do": do, **{key: one for key, one in content.items() if one or key == "shape"}}
        if do not in ("input", "backward", "grad", "hook") and self.with_grad and self.chance.random() < 0.05:
            # torch forgets where a view with history came from when it is written into in no_grad().
            changed = statement["args"][0] if do in CHANGING else None
            if not isinstance(changed, dict) or self.tensor(changed["tensor"])._base is None:
                statement["no_grad"] = True
        self.program.append(statement)
        self.outcomes.append(self.machine.run(statement))
        return str(statement["id"])

    def input(self, shape: list[int], dtype: str | None = None, style: str = "") -> str:
        dtype = dtype or (self.dtype if self.chance.random() < 0.7 else self.chance.choice(DTYPES))
        floating = dtype in FLOATS or dtype in COMPLEX
        if not style and floating and self.chance.random() < 0.06:
            style = "special"
        return self.add(
            "input",
            shape=shape,
            dtype=dtype,
            seed=self.chance.randrange(1000),
            style=style,
            layout=self.chance.choice(LAYOUTS) if shape and self.chance.random() < 0.3 else "",
            grad=floating and self.with_grad and self.chance.random() < 0.7,
        )

    def op(self, op: Op) -> None:
        form = self.chance.choices(op.forms, [0.4 if form == "o" else 1 for form in op.forms])[0]
        self.first: str | None = None
        self.dim: int | None = None
        self.wants_change = form in "iP"
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        for argument in op.arguments:
            key, _, kind = argument.rpartition("=")
            if kind.endswith("?"):
                kind = kind[:-1]
                if self.chance.random() < 0.5:
                    if key:
                        continue
                    break
            made = getattr(self, "of_" + kind)()
            if key:
                keywords[key] = made
            else:
                arguments.append(made)
        name = op.name
        do = {
            "f": "call",
            "m": "method",
            "i": "inplace",
            "o": "out",
            "a": "attribute",
            "p": "operator",
            "P": "inplace_operator",
        }[form]
        if form == "i":
            name += "_"
        if form == "o":
            keywords["out"] = {"tensor": self.out()}
        self.add(do, name=name, args=arguments, kwargs=keywords)

    def out(self) -> str:
        if self.chance.random() < 0.5:
            return self.any_tensor()
        return self.input(self.related(self.tensor(self.first).shape) if self.first else self.shape)

    def get(self) -> None:
        label = self.of_x()["tensor"]
        self.add("get", args=[{"tensor": label}, self.subscript(label)])

    def set(self) -> None:
        self.wants_change = True
        label = self.of_x()["tensor"]
        index = self.subscript(label)
        value = self.of_number() if self.chance.random() < 0.4 else self.value_for(label, index)
        self.add("set", args=[{"tensor": label}, index, value])

    def value_for(self, label: str, index: Any) -> Any:
        try:
            shape = list(self.tensor(label)[self.machine.value(index)].shape)
        except Exception:
            shape = self.shape
        return {"tensor": self.fitting(shape)}

    def hook(self) -> None:
        label = self.differentiable()
        if label is not None:
            self.add("hook", args=[{"tensor": label}, self.chance.choice([2, 0.5, -1, 0])])

    def backward(self) -> None:
        label = self.differentiable(results=True)
        if label is not None:
            self.add("backward", args=[{"tensor": label}], kwargs=self.flags("retain_graph", "create_graph"))

    def grad(self) -> None:
        label = self.differentiable(results=True)
        inputs = [one for one in self.labels() if self.tensor(one).requires_grad]
        if label is not None and inputs:
            chosen = self.chance.sample(inputs, min(len(inputs), self.chance.choice([1, 1, 2])))
            flags = self.flags("create_graph", "retain_graph")
            if self.chance.random() < 0.8:
                flags["allow_unused"] = True
            self.add("grad", args=[{"tensor": label}, [{"tensor": one} for one in chosen]], kwargs=flags)

    def flags(self, *names: str) -> dict[str, Any]:
        return {name: True for name in names if self.chance.random() < 0.4}

    # -------------------------------------------------------------- tensors

    def labels(self) -> list[str]:
        return list(self.machine.known)

    def tensor(self, label: str) -> Any:
        return self.machine.tensors[label]

    def any_tensor(self, fits: Any = None) -> str:
        """An earlier tensor, the younger the likelier; a new input where none fits."""
        labels = [
            one for one in self.labels() if self.tensor(one).numel() <= LARGEST and (fits is None or fits(self.tensor(one)))
        ]
        if not labels:
            return self.input(self.shape)
        return self.chance.choices(labels, range(1, len(labels) + 1))[0]

    def differentiable(self, results: bool = False) -> str | None:
        labels = [one for one in self.labels() if self.tensor(one).requires_grad]
        made = [one for one in labels if leaf(self.tensor(one)) is False]
        if results and made and self.chance.random() < 0.95:
            return self.chance.choices(made, range(1, len(made) + 1))[0]
        return self.chance.choice(labels) if labels else None

    def related(self, shape: Any) -> list[int]:
        """A shape that broadcasts with another, or one of the same elements."""
        shape = list(shape)
        roll = self.chance.random()
        if roll < 0.5:
            return shape
        if roll < 0.7:
            return [1 if self.chance.random() < 0.5 else one for one in shape]
        if roll < 0.85 and shape:
            return shape[self.chance.randrange(len(shape)) :]
        if roll < 0.92:
            return [self.chance.choice([1, 2]), *shape]
        return self.some_shape()

    def fitting(self, shape: Any) -> str:
        """A tensor that broadcasts to a shape."""
        wanted = list(shape)

        def fits(tensor: Any) -> bool:
            own = list(tensor.shape)
            pairs = zip(own[::-1], wanted[::-1], strict=False)
            return len(own) <= len(wanted) and all(one in (1, two) for one, two in pairs)

        if self.chance.random() < 0.5 and any(fits(self.tensor(one)) for one in self.labels()):
            return self.any_tensor(fits)
        return self.input(self.related(wanted) if self.chance.random() < 0.5 else wanted)

    def shape_of_first(self) -> list[int]:
        return list(self.tensor(self.first).shape) if self.first else self.shape

    # -------------------------------------------------------------- kinds of argument

    def of_x(self) -> Any:
        fits = None
        # A leaf that requires grad refuses changes: sometimes, not mostly.
        if getattr(self, "wants_change", False) and self.chance.random() < 0.85:

            def fits(one: Any) -> bool:
                return not (leaf(one) is True and one.requires_grad) and not overlaps_itself(one)

        self.first = self.any_tensor(fits)
        return {"tensor": self.first}

    def of_leaf(self) -> Any:
        """A leaf that has no views: theirs begin to require grad in torch when it does."""
        described = self.machine.known.values()
        bases = {one[5] for one in described} | {one[6] for one in described}
        views = {id(self.tensor(label)) for label in bases if label in self.machine.tensors}
        self.first = self.any_tensor(lambda one: leaf(one) is True and id(one) not in views)
        return {"tensor": self.first}

    def of_tensor(self) -> Any:
        return {"tensor": self.fitting(self.shape_of_first())}

    def of_other(self) -> Any:
        return self.of_number() if self.chance.random() < 0.4 else self.of_tensor()

    def of_other_tensor(self) -> Any:
        return self.of_tensor()

    def of_scalar(self) -> Any:
        return {"tensor": self.input([])}

    def of_number(self) -> Any:
        kind = self.chance.choices("bifc", [1, 4, 4, 1])[0]
        if kind == "b":
            return self.chance.random() < 0.5
        if kind == "i":
            return self.chance.choice([0, 1, 2, 3, -1, -2, 5, 7, 100, 300])
        if kind == "f":
            return self.chance.choice([0.0, 0.5, 1.0, 1.5, -2.0, -0.75, 2.5, 3.0, 1e3])
        return {"complex": [self.chance.choice([0.0, 1.0, -0.5]), self.chance.choice([1.0, -2.0])]}

    def of_bound(self) -> Any:
        roll = self.chance.random()
        return None if roll < 0.2 else self.of_number() if roll < 0.7 else self.of_tensor()

    def of_small(self) -> int:
        return self.chance.choice([0, 1, 1, 2, -1])

    def of_small_step(self) -> int:
        return self.chance.choice([1, 1, 2])

    def of_count(self) -> int:
        return self.chance.choice([1, 2, 2, 3])

    def of_size(self) -> int:
        return self.chance.choice([0, 1, 1, 2, 2, 3])

    def of_offset(self) -> int:
        return self.chance.choice([0, 0, 1, 2])

    def of_bool(self) -> bool:
        return self.chance.random() < 0.5

    def of_true(self) -> bool:
        return True

    def of_norm_order(self) -> Any:
        return self.chance.choice([2, 1, 0, 3, 2.5, math.inf, -math.inf, -1])

    def of_quantile(self) -> float:
        return self.chance.choice([0.0, 0.25, 0.5, 1.0])

    def of_rounding(self) -> Any:
        return self.chance.choice(["floor", "trunc", None])

    def of_reduce(self) -> str:
        return self.chance.choice(["sum", "prod", "mean", "amax", "amin"])

    def of_loss_reduction(self) -> str:
        return self.chance.choice(["none", "mean", "sum"])

    def of_lerp_weight(self) -> Any:
        return self.chance.choice([0.25, 0.5, 2]) if self.chance.random() < 0.5 else self.of_tensor()

    def of_dtype(self) -> Any:
        return {"torch": self.chance.choice(DTYPES)}

    def of_format(self) -> Any:
        return {"torch": self.chance.choice(["contiguous_format", "preserve_format", "preserve_format", "channels_last"])}

    def of_dim(self) -> int:
        dims = len(self.shape_of_first())
        if self.chance.random() < 0.04:
            self.dim = self.chance.choice([dims, -dims - 1, 7])
        else:
            self.dim = self.chance.randrange(-max(dims, 1), max(dims, 1))
        return self.dim

    def of_dim_or_more(self) -> int:
        dims = len(self.shape_of_first()) + 1
        return self.chance.randrange(-dims, dims)

    def of_dims(self) -> list[int]:
        dims = len(self.shape_of_first())
        chosen = self.chance.sample(range(dims), self.chance.randint(0, dims)) if self.chance.random() < 0.95 else [0, 0]
        return [one - dims if self.chance.random() < 0.3 else one for one in chosen]

    def of_order(self) -> list[int]:
        order = list(range(len(self.shape_of_first())))
        self.chance.shuffle(order)
        return order

    def size_at(self, dim: int | None) -> int:
        shape = self.shape_of_first()
        return shape[dim] if dim is not None and -len(shape) <= dim < len(shape) else 1

    def of_position(self) -> int:
        size = self.size_at(self.dim)
        return self.chance.randrange(-size, size) if size and self.chance.random() < 0.95 else size

    def of_shape(self) -> list[int]:
        return self.related(self.shape_of_first())

    def of_view_shape(self) -> list[int]:
        count = math.prod(self.shape_of_first())
        roll = self.chance.random()
        if roll < 0.2:
            return [-1]
        if roll < 0.25:
            return [self.chance.choice([2, 3]), -1]
        if not count:
            return self.chance.choice([[0], [0, 2], [2, 0], [1, 0], [-1, 0]])
        divisors = [one for one in range(1, count + 1) if count % one == 0]
        first = self.chance.choice(divisors)
        rest = count // first
        second = self.chance.choice([one for one in range(1, rest + 1) if rest % one == 0])
        shape = [first, second, rest // second]
        while len(shape) > 1 and shape[-1] == 1 and self.chance.random() < 0.7:
            shape.pop()
        if self.chance.random() < 0.2:
            shape[self.chance.randrange(len(shape))] = -1
        return shape

    def of_unflatten_sizes(self) -> list[int]:
        size = self.size_at(self.dim)
        return self.chance.choice([[1, size], [size, 1], [-1, 1], [2, -1]])

    def of_expand_shape(self) -> list[int]:
        shape = [
            self.chance.choice([2, 3, 1]) if one == 1 else -1 if self.chance.random() < 0.3 else one
            for one in self.shape_of_first()
        ]
        return [self.chance.choice([1, 2]), *shape] if self.chance.random() < 0.4 else shape

    def of_repeats(self) -> list[int]:
        dims = len(self.shape_of_first()) + (self.chance.random() < 0.3)
        return [self.chance.choice([1, 1, 2, 0]) for _ in range(dims)]

    def of_strided_shape(self) -> list[int]:
        self.strided = self.chance.choice([0, 1, 1, 2, 2])
        return [self.chance.choice([0, 1, 2, 2, 3]) for _ in range(self.strided)]

    def of_strided_strides(self) -> list[int]:
        return [self.chance.choice([0, 1, 1, 2, 3]) for _ in range(self.strided)]

    def of_smaller_shape(self) -> list[int]:
        return [one - 1 if one and self.chance.random() < 0.5 else one for one in self.shape_of_first()]

    def of_last_shape(self) -> list[int]:
        return self.shape_of_first()[-1:]

    def of_padding(self) -> list[int]:
        return [self.chance.choice([0, 1, 1, 2, -1]) for _ in range(2 * self.chance.choice([1, 1, 2]))]

    # index tensors

    def of_mask(self) -> Any:
        shape = self.shape_of_first()
        if self.chance.random() < 0.3:
            masks = [one for one in self.labels() if "bool" in str(self.tensor(one).dtype)]
            if masks:
                return {"tensor": self.chance.choice(masks)}
        return {"tensor": self.input(self.related(shape), "bool")}

    def index_input(self, shape: list[int], size: int) -> Any:
        """Positions below `size`, rarely up to one more."""
        dtype = "int64" if self.chance.random() < 0.92 else self.chance.choice(["int32", "float32", "uint8"])
        below = max(size, 1) + (self.chance.random() < 0.05)
        return {"tensor": self.input(shape, dtype, f"below {below}" if dtype != "float32" else "")}

    def of_index(self) -> Any:
        shape = [max(one - (self.chance.random() < 0.2), 0) for one in self.shape_of_first()]
        self.index_shape = shape
        return self.index_input(shape, self.size_at(self.dim))

    def of_index_source(self) -> Any:
        return {"tensor": self.input(self.index_shape, self.dtype_of_first())}

    def dtype_of_first(self) -> str | None:
        if self.first and self.chance.random() < 0.9:
            return Machine.dtype(self.tensor(self.first))
        return None

    def of_index_vector(self) -> Any:
        self.index_shape = [self.chance.choice([1, 2, 2, 3, 0])]
        return self.index_input(self.index_shape if self.chance.random() < 0.95 else [], self.size_at(self.dim))

    def of_index_slices(self) -> Any:
        shape = self.shape_of_first()
        if shape and self.dim is not None and -len(shape) <= self.dim < len(shape):
            shape[self.dim] = self.index_shape[0]
        return {"tensor": self.input(shape, self.dtype_of_first())}

    def of_flat_index(self) -> Any:
        self.index_shape = self.chance.choice([[2], [3], [1], [], [2, 2], [0]])
        return self.index_input(self.index_shape, math.prod(self.shape_of_first()))

    def of_flat_source(self) -> Any:
        return {"tensor": self.input(self.index_shape, self.dtype_of_first())}

    def of_source(self) -> Any:
        return {"tensor": self.input([LARGEST // 2], self.dtype_of_first())}

    def of_index_values(self) -> Any:
        return {"tensor": self.input([self.chance.choice([0, 2, 4])], "int64", "below 3")}

    def of_index_tuple(self) -> Any:
        shape = self.shape_of_first() or [1]
        return [self.index_input([2], size) for size in shape[: self.chance.randint(1, len(shape))]]

    def of_sorted(self) -> Any:
        return {"tensor": self.add("call", name="arange", args=[4], kwargs={"dtype": self.of_dtype()})}

    def subscript(self, label: str) -> Any:
        """An index: one item, or a tuple of them."""
        shape = list(self.tensor(label).shape)
        count = self.chance.choices([0, 1, 2, 3], [1, 6, 5, 2])[0]
        items: list[Any] = []
        at = 0
        for _ in range(count):
            size = shape[at] if at < len(shape) else 2
            kind = self.chance.choices(
                ["int", "slice", "none", "dots", "mask", "index", "list", "bool"], [5, 6, 2, 2, 2, 3, 1, 0.5]
            )[0]
            if kind == "dots" and {"dots": 1} in items:
                kind = "slice"
            if kind in ("int", "slice", "index", "list", "mask") and at >= len(shape) and self.chance.random() < 0.9:
                kind = "none"
            at += kind in ("int", "slice", "index", "list", "mask")
            items.append(self.subscript_item(kind, size))
        if len(items) == 1 and self.chance.random() < 0.7:
            return items[0]
        return {"tuple": items}

    def subscript_item(self, kind: str, size: int) -> Any:
        match kind:
            case "int":
                return self.chance.randrange(-size, size) if size and self.chance.random() < 0.97 else size
            case "slice":
                ends = [None, None, 0, 1, 2, -1, -2]
                return {"slice": [self.chance.choice(ends), self.chance.choice(ends), self.chance.choice([None, None, 1, 2])]}
            case "none":
                return None
            case "dots":
                return {"dots": 1}
            case "mask":
                return {"tensor": self.input([size], "bool")}
            case "index":
                return self.index_input(self.chance.choice([[2], [1], [], [2, 1], [0], [3]]), size)
            case "list":
                return self.chance.choice([[0], [0, 0], [0, -1], []])
        return self.chance.random() < 0.5

    # several tensors, products

    def of_several(self) -> Any:
        shape = self.tensor(self.any_tensor()).shape
        return [{"tensor": self.fitting(shape)} for _ in range(self.chance.choice([1, 2, 2]))]

    def of_tensors_stack(self) -> Any:
        self.first = self.any_tensor()
        return [{"tensor": self.first}] + [{"tensor": self.same_shape()} for _ in range(self.chance.choice([0, 1, 1, 2]))]

    def same_shape(self) -> str:
        shape = self.shape_of_first()
        if self.chance.random() < 0.5:
            return self.any_tensor(lambda one: list(one.shape) == shape)
        return self.input(shape if self.chance.random() < 0.95 else self.related(shape))

    def of_tensors_cat(self) -> Any:
        return self.of_tensors_stack()

    def of_right(self) -> Any:
        shape = self.shape_of_first()
        self.inner = shape[-1] if shape else 1
        options = [[self.inner], [self.inner, 2], [*shape[:-2], self.inner, 2]]
        return {"tensor": self.input(self.chance.choice(options), self.dtype_of_first())}

    def of_left(self) -> Any:
        shape = self.shape_of_first()
        self.last = shape[-1] if shape else 1
        self.batch = shape[:-2]
        return {"tensor": self.input([*shape[:-1], 3], self.dtype_of_first())}

    def of_right_of(self) -> Any:
        right = [*self.batch, 3, self.last] if len(self.shape_of_first()) > 1 else [3]
        return {"tensor": self.input(right, self.dtype_of_first())}

    def of_weight(self) -> Any:
        return {"tensor": self.input([2, *self.shape_of_first()[-1:]], self.dtype_of_first())}

    def of_vector(self) -> Any:
        shape = self.shape_of_first()
        self.vector_dim = 1 - getattr(self, "vector_dim", 1)
        return {"tensor": self.input(shape[self.vector_dim : self.vector_dim + 1] or [2], self.dtype_of_first())}

    def of_equation(self) -> str:
        self.equation = self.chance.choice(EQUATIONS)
        return self.equation

    def of_operands(self) -> Any:
        sizes = {letter: self.chance.choice(SIZES) for letter in "ijkb"}
        shapes = [
            [size for letter in term for size in (self.shape[:1] if letter == "." else [sizes[letter]])]
            for term in self.equation.partition("->")[0].replace("...", ".").split(",")
        ]
        dtype = self.dtype if self.chance.random() < 0.95 else None
        return [{"tensor": self.operand(shape, dtype)} for shape in shapes]

    def operand(self, shape: list[int], dtype: str | None) -> str:
        if self.chance.random() < 0.5:
            for label in self.labels():
                if list(self.tensor(label).shape) == shape and Machine.dtype(self.tensor(label)) == dtype:
                    return label
        return self.input(shape, dtype)


def overlaps_itself(tensor: Any) -> bool:
    """Whether elements share places though no stride is 0: what writing gives there is not defined, and torch does not look."""
    sizes, strides = tensor.shape, tensor.stride()
    reach = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return 0 not in strides and tensor.numel() > reach


def make_program(torch: Any, seed: int, number: int) -> tuple[list[Statement], list[Outcome], dict[str, Any]]:
    """The program of a number in the sequence of a seed, with what it came to."""
    return Maker(torch, f"{seed}:{number}").make()

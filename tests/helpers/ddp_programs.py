"""Training by DistributedDataParallel, for `rank_programs`: what the parameters are after some steps, on every rank."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

STEPS = 4


class Kit:
    """The modules of one package, and models made of them."""

    def __init__(self, torch: Any, dist: Any, rank: int, size: int) -> None:
        self.torch, self.dist, self.rank, self.size = torch, dist, rank, size
        self.nn = torch.nn
        self.ddp = importlib.import_module(f"{torch.__name__}.nn.parallel").DistributedDataParallel
        self.hooks = f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks"

    def wrap(self, model: Any, **options: Any) -> Any:
        return self.ddp(model, **options)

    def batch(self, *shape: int) -> Any:
        """This rank's part of a batch that all ranks can make."""
        self.torch.manual_seed(50)
        whole = self.torch.randn(self.size * 3, *shape)
        return whole[self.rank * 3 : self.rank * 3 + 3]

    def trained(self, model: Any, x: Any, loss: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        wrapped = self.wrap(model, **options)
        optimizer = self.torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
        for _ in range(STEPS):
            optimizer.zero_grad()
            output = wrapped(x)
            (loss(output) if loss else output.pow(2).mean()).backward()
            optimizer.step()
        return self.state(wrapped.module)

    def state(self, model: Any) -> Any:
        """Sums of parameters, gradients and buffers, to digits that rounding leaves alone."""
        return {
            name: [
                round(float(value.detach().float().sum()), 4),
                None if value.grad is None else round(float(value.grad.sum()), 4),
            ]
            for name, value in [*model.named_parameters(), *model.named_buffers()]
        }


def mlp(kit: Kit) -> Any:
    kit.torch.manual_seed(kit.rank)  # other weights on every rank, until rank 0's are sent
    return kit.nn.Sequential(kit.nn.Linear(4, 8), kit.nn.ReLU(), kit.nn.Linear(8, 2))


def normalized(kit: Kit) -> Any:
    kit.torch.manual_seed(kit.rank)
    return kit.nn.Sequential(kit.nn.Linear(4, 8), kit.nn.BatchNorm1d(8), kit.nn.Tanh(), kit.nn.Linear(8, 2))


def convolution(kit: Kit) -> Any:
    kit.torch.manual_seed(kit.rank)
    nn = kit.nn
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))


def recurrent(kit: Kit) -> Any:
    kit.torch.manual_seed(kit.rank)

    class Last(kit.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = kit.nn.LSTM(4, 5, batch_first=True), kit.nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    return Last()


def tied(kit: Kit) -> Any:
    kit.torch.manual_seed(kit.rank)
    first, second = kit.nn.Linear(4, 4), kit.nn.Linear(4, 4)
    second.weight = first.weight
    return kit.nn.Sequential(first, kit.nn.Tanh(), second)


def frozen(kit: Kit) -> Any:
    model = mlp(kit)
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    return model


def mixed(kit: Kit) -> Any:
    """Parameters of two dtypes."""
    kit.torch.manual_seed(kit.rank)

    class Mixed(kit.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = kit.nn.Linear(4, 3), kit.nn.Linear(3, 2).double()

        def forward(self, x: Any) -> Any:
            return self.wide(self.narrow(x).double())

    return Mixed()


def two_heads(kit: Kit, choose: Callable[[Kit, int], int]) -> Any:
    """A model that uses one of two heads, which one by rank and step."""
    kit.torch.manual_seed(kit.rank)

    class Heads(kit.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = kit.nn.Linear(4, 4)
            self.heads = kit.nn.ModuleList([kit.nn.Linear(4, 2), kit.nn.Linear(4, 2), kit.nn.Linear(4, 2)])
            self.step = 0

        def forward(self, x: Any) -> Any:
            self.step += 1
            return {"out": self.heads[choose(kit, self.step)](self.body(x).tanh())}

    return Heads()


def accumulated(kit: Kit) -> Any:
    wrapped = kit.wrap(mlp(kit))
    optimizer = kit.torch.optim.SGD(wrapped.parameters(), lr=0.1)
    x = kit.batch(4)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with wrapped.no_sync():
            wrapped(x).pow(2).mean().backward()
            wrapped(x * 2).sum().backward()
        wrapped(x + 1).pow(2).mean().backward()
        optimizer.step()
    return kit.state(wrapped.module)


def hooked(name: str) -> Callable[[Kit], Any]:
    def program(kit: Kit) -> Any:
        wrapped = kit.wrap(mlp(kit))
        hook = getattr(importlib.import_module(kit.hooks), name)
        if name.endswith("wrapper"):
            hook = hook(importlib.import_module(kit.hooks).allreduce_hook)
        wrapped.register_comm_hook(None, hook)
        for _ in range(2):
            wrapped(kit.batch(4)).pow(2).mean().backward()
        return {
            key: [round(value, 2) if value is not None else None for value in pair] for key, pair in kit.state(wrapped).items()
        }

    return program


def own_hook(kit: Kit) -> Any:
    """What a hook is told of the buckets: they are one until gradients have come once, and of their size then."""
    wrapped, told = kit.wrap(mlp(kit), bucket_cap_mb=0.0001), []

    def hook(state, bucket):  # torch looks at annotations
        if len(state) == 2:
            told.append([bucket.buffer().numel(), sorted(each.numel() for each in bucket.parameters()), bucket.is_last()])
        future = kit.torch.futures.Future()
        future.set_result(bucket.buffer() * 0 + 5)
        return future

    state: list[int] = []
    wrapped.register_comm_hook(state, hook)
    for step in range(2):
        state.append(step)
        wrapped(kit.batch(4)).sum().backward()
    return [sum(size for size, _, _ in told), told[-1][2], kit.state(wrapped.module)]


def evaluated(kit: Kit) -> Any:
    wrapped = kit.wrap(normalized(kit))
    wrapped.eval()
    with kit.torch.no_grad():
        outputs = wrapped(kit.batch(4))
    return [round(float(outputs.sum()), 4), sorted(wrapped.state_dict())[:2], type(wrapped.module).__name__]


def left_unused(kit: Kit) -> Any:
    wrapped = kit.wrap(two_heads(kit, lambda kit, step: 0))
    wrapped(kit.batch(4))["out"].sum().backward()
    try:
        wrapped(kit.batch(4))["out"].sum().backward()
    except RuntimeError as error:
        return str(error).splitlines()[0][:80]
    return "no error"


def refused(**options: Any) -> Callable[[Kit], Any]:
    def program(kit: Kit) -> Any:
        model = mlp(kit)
        if options.pop("frozen", False):
            model.requires_grad_(False)
        try:
            kit.wrap(model, **options)
        except Exception as error:
            return [type(error).__name__, str(error)[:60]]
        return "no error"

    return program


PROGRAMS: dict[str, Callable[[Kit], Any]] = {
    "plain": lambda kit: kit.trained(mlp(kit), kit.batch(4)),
    "views": lambda kit: kit.trained(mlp(kit), kit.batch(4), gradient_as_bucket_view=True),
    "static": lambda kit: kit.trained(mlp(kit), kit.batch(4), static_graph=True),
    "small buckets": lambda kit: kit.trained(mlp(kit), kit.batch(4), bucket_cap_mb=0.0001),
    "looked for": lambda kit: kit.trained(mlp(kit), kit.batch(4), find_unused_parameters=True),
    "normalized": lambda kit: kit.trained(normalized(kit), kit.batch(4)),
    "buffers of one's own": lambda kit: kit.trained(normalized(kit), kit.batch(4), broadcast_buffers=False),
    "not sent at first": lambda kit: kit.trained(frozen(kit), kit.batch(4), init_sync=False),
    "convolution": lambda kit: kit.trained(convolution(kit), kit.batch(1, 4, 4)),
    "recurrent": lambda kit: kit.trained(recurrent(kit), kit.batch(3, 4)),
    "tied": lambda kit: kit.trained(tied(kit), kit.batch(4)),
    "frozen": lambda kit: kit.trained(frozen(kit), kit.batch(4)),
    "mixed": lambda kit: kit.trained(mixed(kit), kit.batch(4)),
    "one head": lambda kit: kit.trained(
        two_heads(kit, lambda kit, step: 0), kit.batch(4), lambda out: out["out"].sum(), find_unused_parameters=True
    ),
    "a head for each rank": lambda kit: kit.trained(
        two_heads(kit, lambda kit, step: kit.rank % 2), kit.batch(4), lambda out: out["out"].sum(), find_unused_parameters=True
    ),
    "another head each step": lambda kit: kit.trained(
        two_heads(kit, lambda kit, step: step % 2), kit.batch(4), lambda out: out["out"].sum(), find_unused_parameters=True
    ),
    "static with one head": lambda kit: kit.trained(
        two_heads(kit, lambda kit, step: 0), kit.batch(4), lambda out: out["out"].sum(), static_graph=True
    ),
    "accumulated": accumulated,
    "own hook": own_hook,
    "evaluated": evaluated,
    "left unused": left_unused,
    "nothing to train": refused(frozen=True),
    "device ids": refused(device_ids=[0]),
} | {
    name: hooked(name)
    for name in ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper", "bf16_compress_wrapper")
}


def as_rank_program(program: Callable[[Kit], Any]) -> Callable[[Any, Any, int, int], Any]:
    return lambda torch, dist, rank, size: program(Kit(torch, dist, rank, size))

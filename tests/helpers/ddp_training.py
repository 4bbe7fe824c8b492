"""A hundred steps of DistributedDataParallel in two processes, for torch and for this package: eleven models, and every option.

    python tests/helpers/ddp_training.py --package torch --out FILE      what each rank answers, as JSON

An answer is a hash of all parameters, which must be the same in both processes, and some values of each. What makes much of
a last digit (Adam of a gradient that should be zero, a rounding to float16, errors that are fed back) trains in float64.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import two_ranks
from ddp_programs import Kit, convolution, mixed, mlp, normalized, recurrent, tied, two_heads

STEPS = 100


class Trainer(Kit):
    """Trains models made of one package's modules."""

    def data(self, step: int, *shape: int) -> Any:
        """This rank's part of a step's batch."""
        generator = self.torch.Generator().manual_seed(step)
        whole = self.torch.randn(self.size * 3, *shape, generator=generator)
        return whole[self.rank * 3 : self.rank * 3 + 3]

    def run(
        self,
        model: Any,
        *shape: int,
        steps: int = STEPS,
        optimizer: str = "SGD",
        register: Callable[[Any], None] | None = None,
        accumulate: int = 1,
        data: Callable[..., Any] | None = None,
        wide: bool = False,
        **options: Any,
    ) -> Any:
        wrapped = self.wrap(model.double() if wide else model, **options)
        if register is not None:
            register(wrapped)
        extra = {"momentum": 0.9} if optimizer == "SGD" else {}
        updates = getattr(self.torch.optim, optimizer)(wrapped.parameters(), lr=0.01, **extra)

        def backward(seed: int) -> None:
            x = (data or self.data)(seed, *shape)
            self.loss(wrapped, x.double() if wide else x).backward()

        for step in range(steps):
            updates.zero_grad()
            for part in range(accumulate - 1):
                with wrapped.no_sync():
                    backward(1000 * part + step)
            backward(step)
            updates.step()
        return self.answer(wrapped.module)

    @staticmethod
    def loss(model: Any, x: Any) -> Any:
        output = model(x)
        output = output["out"] if isinstance(output, dict) else output
        return (output - 1).pow(2).mean()

    @staticmethod
    def answer(model: Any) -> Any:
        digest, values = hashlib.sha256(), {}
        for name, parameter in model.named_parameters():
            array = parameter.detach().contiguous().numpy()
            digest.update(array.tobytes())
            flat = array.reshape(-1)
            values[name] = [round(float(each), 8) for each in flat[:: max(1, len(flat) // 6)][:7]]
        return {"hash": digest.hexdigest()[:16], "values": values}


def deep(kit: Trainer) -> Any:
    kit.torch.manual_seed(kit.rank)
    nn = kit.nn
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 3))


def gated(kit: Trainer) -> Any:
    kit.torch.manual_seed(kit.rank)

    class Last(kit.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = kit.nn.GRU(4, 5, num_layers=2, batch_first=True), kit.nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    return Last()


def attention(kit: Trainer) -> Any:
    kit.torch.manual_seed(kit.rank)
    return kit.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


def embedding(kit: Trainer) -> Any:
    kit.torch.manual_seed(kit.rank)

    class Words(kit.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = kit.nn.Embedding(10, 4), kit.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.words((x.abs() * 5).long() % 10).mean(1))

    return Words()


def grouped(kit: Trainer) -> Any:
    kit.torch.manual_seed(kit.rank)
    nn = kit.nn
    return nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))


def hooked(name: str) -> Callable[[Trainer], Any]:
    def program(kit: Trainer) -> Any:
        hook = getattr(importlib.import_module(kit.hooks), name)
        return kit.run(deep(kit), 6, wide=True, register=lambda wrapped: wrapped.register_comm_hook(None, hook))

    return program


def power_sgd(**options: Any) -> Callable[[Trainer], Any]:
    """Gradients of few columns: what is left out comes with the next step."""

    def program(kit: Trainer) -> Any:
        hooks = importlib.import_module(kit.hooks.replace("default_hooks", "powerSGD_hook"))
        state = hooks.PowerSGDState(None, **{"start_powerSGD_iter": 3, "min_compression_rate": 1, **options})
        answer = kit.run(
            deep(kit), 6, wide=True, register=lambda wrapped: wrapped.register_comm_hook(state, hooks.powerSGD_hook)
        )
        return answer | {"stats": [round(float(each), 6) for each in state.compression_stats()]}

    return program


def joined(kit: Trainer) -> Any:
    """The second process has fewer batches."""
    wrapped = kit.wrap(deep(kit))
    updates = kit.torch.optim.SGD(wrapped.parameters(), lr=0.01, momentum=0.9)
    with wrapped.join():
        for step in range(STEPS - 40 * kit.rank):
            updates.zero_grad()
            kit.loss(wrapped, kit.data(step, 6)).backward()
            updates.step()
    return kit.answer(wrapped.module)


def synchronized(kit: Trainer) -> Any:
    """SyncBatchNorm over both parts of a batch. torch has it on devices only, so there both processes take the whole batch."""
    if kit.torch.__name__ != "torch":
        return kit.run(kit.nn.SyncBatchNorm.convert_sync_batchnorm(normalized(kit)), 4)

    def whole(step: int, *shape: int) -> Any:
        return kit.torch.randn(kit.size * 3, *shape, generator=kit.torch.Generator().manual_seed(step))

    return kit.run(normalized(kit), 4, data=whole)


PROGRAMS: dict[str, Callable[[Trainer], Any]] = {
    "mlp": lambda kit: kit.run(mlp(kit), 4),
    "deep": lambda kit: kit.run(deep(kit), 6),
    "normalized": lambda kit: kit.run(normalized(kit), 4, wide=True),
    "convolution": lambda kit: kit.run(convolution(kit), 1, 4, 4),
    "recurrent": lambda kit: kit.run(recurrent(kit), 3, 4),
    "gated": lambda kit: kit.run(gated(kit), 3, 4),
    "attention": lambda kit: kit.run(attention(kit), 3, 8),
    "embedding": lambda kit: kit.run(embedding(kit), 5),
    "grouped": lambda kit: kit.run(grouped(kit), 2, 6),
    "tied": lambda kit: kit.run(tied(kit), 4),
    "mixed": lambda kit: kit.run(mixed(kit), 4),
    "Adam": lambda kit: kit.run(deep(kit), 6, optimizer="Adam", wide=True),
    "AdamW, views": lambda kit: kit.run(deep(kit), 6, optimizer="AdamW", wide=True, gradient_as_bucket_view=True),
    "views": lambda kit: kit.run(attention(kit), 3, 8, gradient_as_bucket_view=True),
    "static": lambda kit: kit.run(attention(kit), 3, 8, static_graph=True),
    "static, views, small buckets": lambda kit: kit.run(
        attention(kit), 3, 8, static_graph=True, gradient_as_bucket_view=True, bucket_cap_mb=0.0005
    ),
    "looked for": lambda kit: kit.run(attention(kit), 3, 8, find_unused_parameters=True),
    "a head for each rank": lambda kit: kit.run(two_heads(kit, lambda kit, step: kit.rank), 4, find_unused_parameters=True),
    "another head each step": lambda kit: kit.run(
        two_heads(kit, lambda kit, step: step % 2), 4, find_unused_parameters=True, gradient_as_bucket_view=True
    ),
    "static with one head": lambda kit: kit.run(two_heads(kit, lambda kit, step: 0), 4, static_graph=True),
    "no_sync": lambda kit: kit.run(deep(kit), 6, accumulate=3),
    "no_sync, views": lambda kit: kit.run(deep(kit), 6, accumulate=3, gradient_as_bucket_view=True),
    "buffers of one's own": lambda kit: kit.run(normalized(kit), 4, wide=True, broadcast_buffers=False),
    "allreduce_hook": hooked("allreduce_hook"),
    "fp16_compress_hook": hooked("fp16_compress_hook"),
    "PowerSGD, one column": power_sgd(),
    "PowerSGD, two columns": power_sgd(matrix_approximation_rank=2),
    "PowerSGD, three columns": power_sgd(matrix_approximation_rank=3),
    "PowerSGD, alike together": power_sgd(batch_tensors_with_same_shape=True),
    "PowerSGD, no memory": power_sgd(use_error_feedback=False, warm_start=False, orthogonalization_epsilon=1e-6),
    "join": joined,
    "SyncBatchNorm": synchronized,
}


def chosen_programs() -> list[str]:
    """A quarter of them, with DDP_TRAININGS=all all."""
    return list(PROGRAMS)[:: 1 if os.environ.get("DDP_TRAININGS") == "all" else 4]


def run_rank(package: str, rank: int, port: int, out: Path) -> None:
    """Run all programs as one of the processes."""
    warnings.simplefilter("ignore")
    torch = importlib.import_module(package)
    dist = importlib.import_module(f"{package}.distributed")
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=timedelta(seconds=300)
    )
    kit, answers = Trainer(torch, dist, rank, 2), {}
    for name in PROGRAMS if package == "torch" else chosen_programs():
        answers[name] = PROGRAMS[name](kit)
    out.write_text(json.dumps(answers))
    dist.destroy_process_group()


def run(python: str, package: str) -> list[Any]:
    """The answers of both processes."""
    return two_ranks.run(__file__, python, package, timeout_s=900)


if __name__ == "__main__":
    two_ranks.main(__doc__, __file__, run_rank)

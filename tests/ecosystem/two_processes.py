"""Programs that libraries run on two processes, started by torchrun; the test reads what rank 0 writes down.

python -m torch.distributed.run --nproc-per-node 2 two_processes.py PROGRAM OUT
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
if os.environ.get("ECOSYSTEM") == "run":
    from mindtorch_v2 import as_torch

    as_torch.install()

import torch
from torch.utils.data import DataLoader, TensorDataset
from weights import fill, normal


def parts() -> tuple[torch.nn.Module, torch.optim.Optimizer, DataLoader]:
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    data = TensorDataset(normal("x", 18, 6), normal("y", 18, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), DataLoader(data, batch_size=2)


def accelerate(out: Path) -> dict:
    """A loop with accumulated gradients, gathered metrics with the odd last batch cut, objects, a saved state."""
    from accelerate import Accelerator
    from accelerate.utils import broadcast_object_list, gather_object

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader = accelerator.prepare(*parts())
    losses, seen = [], []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).tolist())
            seen.append(len(accelerator.gather_for_metrics(x)))
    objects = [accelerator.process_index, "a"] if accelerator.is_main_process else [None, None]
    broadcast_object_list(objects)
    accelerator.save_state(str(out.with_suffix(".state")))
    total = accelerator.reduce(torch.tensor([float(accelerator.process_index + 1)]), "sum")
    return {
        "kind": str(accelerator.distributed_type),
        "wrapped": type(model).__name__,
        "processes": accelerator.num_processes,
        "losses": losses,
        "seen": seen,
        "objects": [gather_object([accelerator.process_index]), objects],
        "sum": total.tolist(),
        "weights": [parameter.sum().item() for parameter in accelerator.unwrap_model(model).parameters()],
    }


def lightning(out: Path) -> dict:
    """A trainer with the strategy ddp: sampled data, logged means, a checkpoint, validation."""
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.body = parts()[0]
            self.losses: list[float] = []

        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.mse_loss(self.body(x), y)
            self.log("loss", loss, sync_dist=True)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            x, y = batch
            self.log("val", torch.nn.functional.mse_loss(self.body(x), y), sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    module = Module()
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(module, parts()[2], parts()[2])
    trainer.save_checkpoint(out.with_suffix(".ckpt"))
    gathered = trainer.strategy.all_gather(torch.tensor([float(trainer.global_rank)]))
    return {
        "processes": trainer.world_size,
        "wrapped": type(trainer.strategy.model).__name__,
        "losses": module.losses,
        "metrics": {name: value.item() for name, value in sorted(trainer.callback_metrics.items())},
        "gathered": gathered.flatten().tolist(),
        "steps": trainer.global_step,
        "weights": [parameter.sum().item() for parameter in module.parameters()],
    }


def fabric(out: Path) -> dict:
    """Fabric with the strategy ddp: a module and a loader set up, gradients without averaging in between, all_reduce."""
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    model, optimizer, loader = parts()
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(loader)
    losses = []
    for number, (x, y) in enumerate(loader):
        with fabric.no_backward_sync(model, enabled=number % 2 == 0):
            loss = torch.nn.functional.mse_loss(model(x), y)
            fabric.backward(loss)
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(fabric.all_reduce(loss.detach(), reduce_op="mean").item())
    fabric.barrier()
    return {
        "losses": losses,
        "objects": [fabric.broadcast({"rank": fabric.global_rank}), fabric.world_size],
        "weights": [parameter.sum().item() for parameter in model.parameters()],
    }


if __name__ == "__main__":
    program, target = sys.argv[1], Path(sys.argv[2])
    torch.manual_seed(0)
    answer = globals()[program](target)
    target.with_suffix(f".{os.environ['RANK']}.json").write_text(json.dumps(answer))

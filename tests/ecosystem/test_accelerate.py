"""accelerate: a training loop, and its profiler."""

import pytest
import torch
from accelerate import Accelerator, ProfileKwargs
from accelerate.state import AcceleratorState
from accelerate.utils import set_seed
from weights import fill, normal


@pytest.fixture(autouse=True)
def _no_state_of_other_tests():
    AcceleratorState._reset_state(reset_partial_state=True)


def parts():
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.utils.data.TensorDataset(normal("x", 16, 6), normal("y", 16, 3))
    return model, optimizer, torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)


def test_a_training_loop(figures, tmp_path):
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader = accelerator.prepare(*parts())
    losses = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
    figures.check("losses", losses)
    accelerator.save_state(tmp_path)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    accelerator.load_state(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    figures.check("gathered", accelerator.gather(torch.arange(3)))


def test_profile_kwargs(figures, tmp_path):
    options = ProfileKwargs(
        activities=["cpu"], record_shapes=True, with_flops=True, output_trace_dir=str(tmp_path),
        schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 0},
    )  # fmt: skip
    accelerator = Accelerator(cpu=True, kwargs_handlers=[options])
    model, optimizer, loader = accelerator.prepare(*parts())
    with accelerator.profile() as prof:
        for x, y in loader:
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    averages = {entry.key: entry for entry in prof.key_averages()}
    names = ["aten::addmm", "aten::linear", "aten::gelu", "aten::mse_loss"]
    figures.check("calls", {name: averages[name].count for name in names})
    figures.check("flops", averages["aten::addmm"].flops)
    assert list(tmp_path.glob("*.json"))


def test_mixed_precision(figures):
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(*parts())
    x, y = normal("x", 4, 6), normal("y", 4, 3)
    with accelerator.autocast():
        output = model(x)
    loss = torch.nn.functional.mse_loss(output.float(), y)
    accelerator.backward(loss)
    figures.check("loss", loss.item(), tolerance=1e-2)

"""Files of weights, by the library's own functions for torch."""

import safetensors.torch
import torch
from weights import fill, normal


def test_a_model_is_saved_and_loaded(figures, tmp_path):
    model = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)))
    safetensors.torch.save_model(model, tmp_path / "model.safetensors", metadata={"format": "pt"})
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    assert safetensors.torch.load_model(other, tmp_path / "model.safetensors") == (set(), [])
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
    figures.check("output", other.eval()(normal("x", 3, 4)))


def test_dtypes_survive(tmp_path):
    tensors = {str(d): torch.arange(6).reshape(2, 3).to(d) for d in (torch.bfloat16, torch.float16, torch.int8, torch.bool)}
    safetensors.torch.save_file(tensors, tmp_path / "tensors.safetensors")
    loaded = safetensors.torch.load_file(tmp_path / "tensors.safetensors")
    assert {name: tensor.dtype for name, tensor in loaded.items()} == {name: t.dtype for name, t in tensors.items()}
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)

"""Generation that keeps all states so far in one tensor, which grows by a cat in every step."""

import mindtorch_v2 as torch

torch.manual_seed(0)


def generate(steps=100, width=512, batch=64):
    decay, state = torch.rand(width), torch.zeros(batch, width)
    history = torch.zeros(0, batch, width)
    with torch.inference_mode():
        for _ in range(steps):
            state = torch.tanh(state * decay + torch.randn(batch, width))
            history = torch.cat([history, state.unsqueeze(0)])  # planted: growing_tensor
    return history.mean(dim=0)


generate()

"""A pendulum, integrated with tensors of one number each."""

import mindtorch_v2 as torch

torch.manual_seed(0)


def simulate(steps=250):
    angle, speed = torch.tensor([0.5]), torch.tensor([0.0])
    length, gravity, drag, dt = torch.tensor([1.2]), torch.tensor([9.81]), torch.tensor([0.05]), torch.tensor([0.01])
    path = []
    with torch.no_grad():
        for _ in range(steps):
            pull = gravity / length * torch.sin(angle)  # planted: tiny_ops
            brake = drag * speed * torch.abs(speed)  # planted: tiny_ops
            first = -pull - brake  # planted: tiny_ops
            middle = angle + speed * dt / 2  # planted: tiny_ops
            half = speed + first * dt / 2  # planted: tiny_ops
            second = -gravity / length * torch.sin(middle) - drag * half * torch.abs(half)  # planted: tiny_ops
            angle = angle + half * dt  # planted: tiny_ops
            speed = speed + second * dt  # planted: tiny_ops
            path.append(angle)
    return torch.cat(path)


simulate()

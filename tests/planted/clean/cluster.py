"""k-means on whole tensors."""

import mindtorch_v2 as torch

torch.manual_seed(0)


def cluster(points, count=32, rounds=16):
    centers = points[torch.randperm(len(points))[:count]].clone()
    for _ in range(rounds):
        distances = torch.cdist(points, centers)
        nearest = distances.argmin(dim=1)
        members = torch.nn.functional.one_hot(nearest, count).to(points.dtype)
        sizes = members.sum(dim=0).clamp(min=1)
        centers = (members.T @ points) / sizes.unsqueeze(1)
    return centers, distances.min(dim=1).values.mean()


centers, spread = cluster(torch.randn(6000, 64))
print(spread.item())

"""torch.distributed.algorithms._checkpoint: activations that are computed again in the backward pass."""

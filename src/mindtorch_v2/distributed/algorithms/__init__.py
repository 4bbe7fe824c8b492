"""torch.distributed.algorithms: what communication hooks do with buckets of gradients."""

"""torch.distributed.algorithms.model_averaging: means of parameters every few steps."""

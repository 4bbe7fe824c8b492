"""torch.nested._internal: the class of nested tensors, for isinstance."""

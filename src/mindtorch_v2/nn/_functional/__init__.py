"""torch.nn.functional by subject; `nn.functional` is where they are all found."""

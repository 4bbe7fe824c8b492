"""Learning rate schedulers, one file per kind; optim.lr_scheduler has their public names."""

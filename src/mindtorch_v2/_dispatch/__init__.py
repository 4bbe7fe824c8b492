"""From a call to a kernel: schemas, the registry, the dispatcher, and the slot for an observer."""

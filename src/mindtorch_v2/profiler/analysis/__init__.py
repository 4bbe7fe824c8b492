"""ResultsMixin worked out from an EventStore: the same for a live profile, a saved one and a trace that PyTorch wrote."""

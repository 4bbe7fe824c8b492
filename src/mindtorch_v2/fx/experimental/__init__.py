"""torch.fx.experimental: names that libraries import."""

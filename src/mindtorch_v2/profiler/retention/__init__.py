"""What happens to rows while a recording runs: they stay with the recorder, or a policy streams, bounds or sums them."""

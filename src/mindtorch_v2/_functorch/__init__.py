"""torch._functorch: the steps of `vmap`, which libraries with containers of their own replace."""

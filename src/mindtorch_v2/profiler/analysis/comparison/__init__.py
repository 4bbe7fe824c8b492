"""Two recordings or many: what became faster or slower, and whether the recordings are evidence enough to say so."""

"""What carries bytes between processes: MPI, nothing for a process alone, and one that only says it does."""

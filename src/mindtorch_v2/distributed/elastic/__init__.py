"""torch.distributed.elastic: starting the processes of a job, watching them, and starting them again when one fails."""

"""A GPU or NPU: what it did and waited for, and how work queued up for it."""

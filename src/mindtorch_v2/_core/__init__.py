"""The bottom of the house: dtypes, devices, storages, tensors, printing, random numbers. Knows no op."""

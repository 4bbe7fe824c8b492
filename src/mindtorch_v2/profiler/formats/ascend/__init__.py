"""Folders of Ascend's profilers, `*_ascend_pt` of torch_npu and `*_ascend_ms` of MindSpore, read into a store."""

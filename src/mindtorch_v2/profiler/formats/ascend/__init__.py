"""Folders of Ascend's profilers (`*_ascend_pt` of torch_npu, `*_ascend_ms` of MindSpore): what is in them, read into a store."""

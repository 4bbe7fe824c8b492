"""torch.profiler._pattern_matcher: anti-patterns under torch's module name."""

from __future__ import annotations

from ._utils import source_code_location
from .analysis.patterns import (
    Conv2dBiasFollowedByBatchNorm2dPattern,
    ExtraCUDACopyPattern,
    ForLoopIndexingPattern,
    FP32MatMulPattern,
    GradNotSetToNonePattern,
    MatMulDimInFP16Pattern,
    NamePattern,
    OptimizerSingleTensorPattern,
    Pattern,
    SynchronizedDataLoaderPattern,
    input_dtypes,
    input_shapes,
    report_all_anti_patterns,
)

__all__ = [
    "Conv2dBiasFollowedByBatchNorm2dPattern",
    "ExtraCUDACopyPattern",
    "FP32MatMulPattern",
    "ForLoopIndexingPattern",
    "GradNotSetToNonePattern",
    "MatMulDimInFP16Pattern",
    "NamePattern",
    "OptimizerSingleTensorPattern",
    "Pattern",
    "SynchronizedDataLoaderPattern",
    "input_dtypes",
    "input_shapes",
    "report_all_anti_patterns",
    "source_code_location",
]

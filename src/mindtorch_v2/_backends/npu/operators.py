"""CANN's operators as data: the arguments of each `aclnn<Name>GetWorkspaceSize`, in CANN's order.

Followed: the headers aclnnop/aclnn_*.h and aclnnop/level2/aclnn_*.h of CANN 8.1.RC1 (opp package, op_api), and for what
an operator does with them the pages of the same names in the documentation of ops-math and ops-nn. Every call ends with
`uint64_t *workspaceSize, aclOpExecutor **executor`, which the table leaves out. A call whose prototype could not be read
in public is not in the table: the op it would serve runs on the CPU.
"""

from __future__ import annotations

from typing import NamedTuple


class Operator(NamedTuple):
    """The argument names of an operator and the kind of each: a word of `signatures.TYPES` or one of KINDS."""

    names: tuple[str, ...]
    words: tuple[str, ...]


KINDS = {
    "T": "tensor",
    "T?": "tensor?",
    "T[]": "tensors",
    "S": "scalar",
    "S?": "scalar?",
    "I[]": "ints",
    "I[]?": "ints?",
    "B[]": "bools",
}
"""aclTensor, aclTensorList, aclScalar, aclIntArray, aclBoolArray; with `?` a null pointer is allowed."""

_UNARY = "self:T out:T"
_BINARY = "self:T other:T out:T"
_WITH_NUMBER = "self:T other:S out:T"

_POINTWISE = {
    "Add": "self:T other:T alpha:S out:T",
    "Adds": "self:T other:S alpha:S out:T",
    "Sub": "self:T other:T alpha:S out:T",
    "Subs": "self:T other:S alpha:S out:T",
    "Mul": _BINARY,
    "Muls": _WITH_NUMBER,
    "Div": _BINARY,
    "Divs": _WITH_NUMBER,
    "Maximum": _BINARY,
    "Minimum": _BINARY,
    "Neg": _UNARY,
    "Abs": _UNARY,
    "Exp": _UNARY,
    "Log": _UNARY,
    "Sqrt": _UNARY,
    "Rsqrt": _UNARY,
    "Reciprocal": _UNARY,
    "PowTensorScalar": "self:T exponent:S out:T",
    "Clamp": "self:T clipValueMin:S? clipValueMax:S? out:T",
    "Addcmul": "self:T tensor1:T tensor2:T value:S out:T",
    "Addcdiv": "self:T tensor1:T tensor2:T value:S out:T",
    "Lerps": "self:T end:T weight:S out:T",
    "SWhere": "condition:T self:T other:T out:T",
    "LogicalNot": _UNARY,
    "LogicalAnd": _BINARY,
    "IsFinite": _UNARY,
    "Cast": "self:T dtype:dtype out:T",
} | {
    f"{name}{form}": row
    for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
    for form, row in (("Tensor", _BINARY), ("Scalar", _WITH_NUMBER))
}

_IN_PLACE = {
    "InplaceAdd": "selfRef:T other:T alpha:S",
    "InplaceAdds": "selfRef:T other:S alpha:S",
    "InplaceSub": "selfRef:T other:T alpha:S",
    "InplaceSubs": "selfRef:T other:S alpha:S",
    "InplaceMul": "selfRef:T other:T",
    "InplaceMuls": "selfRef:T other:S",
    "InplaceDiv": "selfRef:T other:T",
    "InplaceDivs": "selfRef:T other:S",
    "InplaceAddcmul": "selfRef:T tensor1:T tensor2:T value:S",
    "InplaceAddcdiv": "selfRef:T tensor1:T tensor2:T value:S",
    "InplaceLerps": "selfRef:T end:T weight:S",
    "InplaceRelu": "selfRef:T",
    "InplaceExp": "selfRef:T",
    "InplaceCopy": "selfRef:T src:T",  # any strides on both sides, and from one data type to another
    "InplaceFillScalar": "selfRef:T value:S",
    "InplaceZero": "selfRef:T",
    "InplaceMaskedFillScalar": "selfRef:T mask:T value:S",
}

_ACTIVATION = {
    "Relu": _UNARY,
    "ThresholdBackward": "gradOutput:T self:T threshold:S out:T",
    "GeluV2": "x:T approximate:int64 y:T",  # 0: "none", 1: "tanh"
    "GeluBackwardV2": "gradOutput:T self:T approximate:text gradInput:T",  # "none" or "tanh"
    "Tanh": _UNARY,
    "TanhBackward": "gradOutput:T output:T gradInput:T",
    "Sigmoid": _UNARY,
    "SigmoidBackward": "gradOutput:T output:T gradInput:T",
    "Softmax": "self:T dim:int64 out:T",
    "SoftmaxBackward": "gradOutput:T output:T dim:int64 out:T",
    "LogSoftmax": "self:T dim:int64 out:T",
    "LogSoftmaxBackward": "gradOutput:T output:T dim:int64 out:T",
    # shape, chance of dropping, seed, offset, type of the probability; out: one bit an element, 16 bytes for each 128
    "DropoutGenMaskV2": "shape:I[] prob:double seed:int64 offset:int64 probDataType:dtype out:T",
    "DropoutDoMask": "self:T mask:T prob:double out:T",
}

_LOSS = {  # reduction: 0 none, 1 mean, 2 sum
    "NLLLoss": "self:T target:T weight:T reduction:int64 ignoreIndex:int64 out:T totalWeightOut:T",
    "NLLLossBackward": "gradOutput:T self:T target:T weight:T reduction:int64 ignoreIndex:int64 totalWeight:T out:T",
    "MseLoss": "self:T target:T reduction:int64 out:T",
    "MseLossBackward": "gradOutput:T self:T target:T reduction:int64 out:T",
}

_NORM = {
    "LayerNorm": "input:T normalizedShape:I[] weightOptional:T? biasOptional:T? eps:double out:T meanOutOptional:T? "
    "rstdOutOptional:T?",
    "LayerNormBackward": "gradOut:T input:T normalizedShape:I[] mean:T rstd:T weightOptional:T? biasOptional:T? "
    "outputMask:B[] gradInputOut:T? gradWeightOut:T? gradBiasOut:T?",
    "BatchNorm": "input:T weight:T? bias:T? runningMean:T? runningVar:T? training:bool momentum:double eps:double "
    "output:T saveMean:T saveInvstd:T",
    "BatchNormBackward": "gradOut:T input:T weight:T? runningMean:T? runningVar:T? saveMean:T? saveInvstd:T? "
    "training:bool eps:double outputMask:B[] gradInput:T? gradWeight:T? gradBias:T?",
}

_MATMUL = {  # cubeMathType 0: keep the precision of the inputs
    "Mm": "self:T mat2:T out:T cubeMathType:int8",
    "Matmul": "self:T mat2:T out:T cubeMathType:int8",
    "BatchMatMul": "self:T mat2:T out:T cubeMathType:int8",
    "Addmm": "self:T mat1:T mat2:T beta:S alpha:S out:T cubeMathType:int8",
    "Baddbmm": "self:T batch1:T batch2:T beta:S alpha:S out:T cubeMathType:int8",
}

_CONVOLUTION = {
    "Convolution": "input:T weight:T bias:T? stride:I[] padding:I[] dilation:I[] transposed:bool outputPadding:I[] "
    "groups:int64 output:T cubeMathType:int8",
    "ConvolutionBackward": "gradOutput:T input:T weight:T biasSizes:I[]? stride:I[] padding:I[] dilation:I[] "
    "transposed:bool outputPadding:I[] groups:int32 outputMask:B[] cubeMathType:int8 "
    "gradInput:T? gradWeight:T? gradBias:T?",
    # indices: int32, places in the plane of the input
    "MaxPool2dWithIndices": "self:T kernelSize:I[] stride:I[] padding:I[] dilation:I[] ceilMode:bool out:T indices:T",
    "MaxPool2dWithIndicesBackward": "gradOutput:T self:T indices:T kernelSize:I[] stride:I[] padding:I[] dilation:I[] "
    "ceilMode:bool gradInput:T",
    "AvgPool2d": "self:T kernelSize:I[] strides:I[] paddings:I[] ceilMode:bool countIncludePad:bool "
    "divisorOverride:int64 cubeMathType:int8 out:T",
    "AvgPool2dBackward": "gradOutput:T self:T kernelSize:I[] stride:I[] padding:I[] ceilMode:bool countIncludePad:bool "
    "divisorOverride:int64 cubeMathType:int8 gradInput:T",
    "AdaptiveAvgPool2d": "self:T outputSize:I[] out:T",
    "AdaptiveAvgPool2dBackward": "gradOutput:T self:T out:T",
}

_REDUCTION = {
    "ReduceSum": "self:T dims:I[] keepDims:bool dtype:dtype out:T",
    "Mean": "self:T dim:I[] keepDim:bool dtype:dtype out:T",
    "Max": _UNARY,
    "MaxDim": "self:T dim:int64 keepdim:bool out:T indices:T",
    "Amax": "self:T dim:I[] keepDim:bool out:T",
    "ArgMax": "self:T dim:int64 keepdim:bool out:T",
    "Cumsum": "self:T dim:int64 dtype:dtype out:T",
}

_INDEX = {
    "Embedding": "weight:T indices:T out:T",
    "EmbeddingDenseBackward": "grad:T indices:T numWeights:uint64 paddingIdx:uint64 scaleGradByFreq:bool out:T",
    "Cat": "tensors:T[] dim:int64 out:T",
    "Stack": "tensors:T[] dim:int64 out:T",
    "GatherV2": "self:T dim:int64 index:T out:T",
    "IndexSelect": "self:T dim:int64 index:T out:T",
    "Gather": "self:T dim:int64 index:T out:T",
    "ScatterAdd": "self:T dim:int64 index:T src:T out:T",
    "Tril": "self:T diagonal:int64 out:T",
    "Triu": "self:T diagonal:int64 out:T",
    "Arange": "start:S end:S step:S out:T",
}


def _row(text: str) -> Operator:
    pairs = [entry.split(":") for entry in text.split()]
    return Operator(tuple(name for name, _ in pairs), tuple(KINDS.get(word, word) for _, word in pairs))


OPERATORS: dict[str, Operator] = {
    name: _row(text)
    for table in (_POINTWISE, _IN_PLACE, _ACTIVATION, _LOSS, _NORM, _MATMUL, _CONVOLUTION, _REDUCTION, _INDEX)
    for name, text in table.items()
}

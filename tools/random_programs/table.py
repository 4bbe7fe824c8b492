"""The ops that programs are made of, with the kinds of their arguments.

A row: family, how often (relative to other families), forms, names, arguments. Forms: f a function of torch, m a method,
i in place (the name with an underscore), o a function with `out=`, a an attribute, p an operator, P an operator in place.
An argument is a kind, a method `of_<kind>` in generate.py; `name=kind` goes by keyword; with `?` it is given in half of the
calls; a number or a word in quotes stands for itself. Families whose name begins with "exact" copy or move elements: floating
values must come out as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = """
unary        14 fmio abs neg sign square relu positive sgn : x
unary         8 fmio exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sigmoid : x
unary         4 fmio asin acos atan sinh cosh asinh acosh atanh erf erfc erfinv lgamma digamma sinc : x
unary         5 fmio floor ceil trunc frac round : x
unary         1 fmio round : x decimals=small
unary         2 fmo logical_not : x
unary         2 fmio bitwise_not : x
unary         3 fm isnan isinf isfinite isreal signbit isposinf isneginf angle deg2rad rad2deg : x
unary         1 f nn.functional.softplus nn.functional.gelu nn.functional.silu nn.functional.elu : x
unary         1 f nn.functional.logsigmoid nn.functional.hardtanh nn.functional.leaky_relu : x
unary         2 fmi nan_to_num logit : x
complex       3 fm conj_physical resolve_conj angle abs conj : x
complex       2 f real imag view_as_real : x
complex       2 a real imag : x
operator     16 p add sub mul truediv : x other
operator      8 p floordiv mod pow : x other
operator      6 p add sub mul truediv floordiv mod pow : number x
operator      6 p eq ne lt le gt ge : x other
operator      4 p and_ or_ xor lshift rshift : x other
operator      3 p and_ or_ xor lshift rshift : number x
operator      3 p neg invert abs pos : x
operator     10 P iadd isub imul itruediv : x other
operator      4 P ifloordiv imod ipow iand ior ixor ilshift irshift : x other
binary       14 fmio add sub mul div : x other
binary        4 fmio add sub : x other alpha=number
binary        5 fmio floor_divide remainder fmod true_divide pow : x other
binary        3 fmio div : x other rounding_mode=rounding
binary        6 fmo maximum minimum fmax fmin : x tensor
binary        5 fmio eq ne lt le gt ge : x other
binary        3 fmo logical_and logical_or logical_xor : x tensor
binary        3 fmio bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift : x other
binary        3 fmio atan2 hypot copysign xlogy nextafter heaviside logaddexp ldexp gcd lcm : x tensor
binary        2 fmo xlogy copysign float_power : x other
binary        2 f rsub : x other
binary        3 fmio lerp : x tensor lerp_weight
binary        4 fmio addcmul addcdiv : x tensor tensor value=number?
binary        5 fmio clamp : x bound bound
binary        3 fmio clamp_min clamp_max : x bound
binary        1 fm isclose allclose equal : x tensor
binary        2 f where : mask other other
binary        3 m where : x mask other
reduction    14 fm sum mean : x dims? keepdim=bool? dtype=dtype?
reduction     5 fm sum prod : x dim? keepdim=bool? dtype=dtype?
reduction     5 fm amax amin : x dims? keepdim=bool?
reduction     5 fm max min : x
reduction     6 fm max min : x dim keepdim=bool?
reduction     3 fm max min : x tensor
reduction     4 fm argmax argmin : x dim? keepdim=bool?
reduction     3 fm all any : x dim? keepdim=bool?
reduction     3 fm var std : x dims? correction=small? keepdim=bool?
reduction     2 fm var std : x bool
reduction     1 f var_mean std_mean : x dims? correction=small? keepdim=bool?
reduction     3 fm norm : x norm_order? dim? keepdim=bool?
reduction     2 f linalg.vector_norm : x norm_order? dims? keepdim=bool? dtype=dtype?
reduction     4 fm logsumexp : x dims keepdim=bool?
reduction     3 fm nansum nanmean : x dims? keepdim=bool? dtype=dtype?
reduction     2 fm count_nonzero : x dims?
reduction     2 fm median nanmedian mode : x dim keepdim=bool?
reduction     1 fm median nanmedian : x
reduction     1 fm aminmax : x
reduction     1 fm quantile nanquantile : x quantile dim? keepdim=bool?
reduction     2 o sum mean amax amin prod logsumexp : x dim
reduction     1 f std var logsumexp nansum : x dim
scan          4 fm cumsum cumprod : x dim dtype=dtype?
scan          2 fmio cumsum cumprod : x dim
scan          2 fm cummax cummin logcumsumexp : x dim
scan          2 fm diff : x small? dim?
softmax       4 fm softmax log_softmax : x dim dtype=dtype?
softmax       1 f nn.functional.softmin nn.functional.normalize : x dim=dim
sort          2 fm sort argsort : x stable=true dim=dim? descending=bool?
sort          1 fm topk kthvalue : x size dim?
sort          1 fm msort : x
search        1 f searchsorted : sorted tensor right=bool?
search        1 f bucketize : x sorted right=bool?
search        1 fm unique : x
search        1 fm nonzero argwhere : x
search        1 fm bincount : index_values
search        1 fm isin : x tensor
exact_view   10 m view reshape : x view_shape
exact_view    3 f reshape : x view_shape
exact_view    8 fm permute : x order
exact_view    8 fm transpose swapaxes : x dim dim
exact_view    3 a T mT : x
exact_view    3 fm t : x
exact_view    6 m expand : x expand_shape
exact_view    2 f broadcast_to : x expand_shape
exact_view    5 fm select : x dim position
exact_view    5 fm narrow : x dim position size
exact_view    5 fm unsqueeze : x dim_or_more
exact_view    4 fm squeeze : x dim?
exact_view    3 fm flatten : x dim? dim?
exact_view    3 m unfold : x dim size small_step
exact_view    4 fm diagonal : x small? dim? dim?
exact_view    2 fm diag diag_embed : x small?
exact_view    2 fm diagonal : x offset=small dim1=dim dim2=dim
exact_view    5 fm as_strided : x strided_shape strided_strides offset?
exact_view    4 fm movedim moveaxis : x dim dim
exact_view    3 fm chunk : x count dim?
exact_view    3 fm split : x count dim?
exact_view    2 fm tensor_split : x count dim?
exact_view    2 fm unbind : x dim?
exact_view    1 fm ravel : x
exact_view    2 fm unflatten : x dim unflatten_sizes
exact_view    1 m view_as reshape_as expand_as : x tensor
exact_view    1 m view : x dtype
exact_view    2 fm detach : x
exact_view    1 f view_as_complex view_as_real real : x
exact_view    1 fm swapdims : x dim dim
exact_view    1 fm squeeze : x dims
exact_view    2 i transpose t squeeze unsqueeze detach : x dim dim
exact_view    2 i unsqueeze : x dim_or_more
exact_view    2 i t squeeze detach : x
exact_move    3 fm flip : x dims
exact_move    3 fm roll : x small dim?
exact_move    2 fm rot90 : x
exact_move    3 m repeat : x repeats
exact_move    2 f tile : x repeats
exact_move    2 fm repeat_interleave : x count dim?
exact_move    5 f cat : tensors_cat dim
exact_move    4 f stack : tensors_stack dim_or_more
exact_move    2 f hstack vstack dstack : tensors_stack
exact_move    1 f meshgrid : several
exact_move    1 f broadcast_tensors : x tensor
exact_move    4 fmio tril triu : x small?
exact_copy    8 fm clone : x
exact_copy    5 fm clone : x memory_format=format
exact_copy    6 m contiguous : x
exact_copy    3 m contiguous : x memory_format=format
exact_copy    8 m to : x dtype
exact_copy    3 m to : x dtype copy=true
exact_copy    2 m to : x dtype memory_format=format
exact_copy    2 m to : x tensor
exact_copy    2 m type : x dtype
exact_copy    1 m type_as : x tensor
exact_copy    5 m float double half bfloat16 int long short bool byte char cfloat cdouble : x
exact_copy   10 i copy : x other_tensor
exact_copy    3 f zeros_like : x
exact_copy    2 f ones_like zeros_like : x dtype=dtype? memory_format=format?
exact_copy    1 f full_like : x number dtype=dtype?
exact_copy    1 m new_zeros new_ones : x shape dtype=dtype?
exact_copy    1 m new_full : x shape number dtype=dtype?
exact_copy    2 f scalar_tensor : number dtype=dtype?
exact_copy    1 f tensor as_tensor : number dtype=dtype?
exact_copy    1 f full : shape number dtype=dtype?
exact_copy    2 m item tolist numel dim is_contiguous storage_offset : x
exact_copy    1 m is_contiguous : x memory_format=format
exact_fill    5 i fill : x number
exact_fill    2 i fill : x scalar
exact_fill    3 i zero : x
index         4 fm gather take_along_dim : x dim index
index         4 fmio scatter : x dim index index_source
index         3 fmi scatter : x dim index number
index         3 fmio scatter_add : x dim index index_source
index         2 fmi scatter_reduce : x dim index index_source reduce include_self=bool?
index         4 fm index_select : x dim index_vector
index         4 fmio index_add : x dim index_vector index_slices alpha=number?
index         3 fmi index_copy : x dim index_vector index_slices
index         3 fmi index_fill : x dim index_vector number
index         2 fm take : x flat_index
index         2 mi put : x flat_index flat_source accumulate=bool?
index         3 fmi masked_fill : x mask number
index         1 fmi masked_fill : x mask scalar
index         3 fm masked_select : x mask
index         2 fmi masked_scatter : x mask source
index         2 fmi index_put : x index_tuple other_tensor accumulate=bool?
index         2 f select_scatter : x tensor dim position
index         1 f slice_scatter : x tensor dim=dim
index         1 f diagonal_scatter : x tensor
product       8 fmo matmul : x right
product       5 p matmul : x right
product       3 fmo mm bmm mv dot : x right
product       3 f mm bmm mv : x right
product       3 fmio addmm baddbmm addmv : x left right_of beta=number? alpha=number?
product       1 fm outer inner kron : x tensor
product       4 f einsum : equation operands
product       2 f tensordot : x tensor count
product       2 f nn.functional.linear : x weight
product       1 fm addr : x vector vector
product       1 fm cross vdot : x tensor
product       1 fm trace : x
linear        1 f linalg.norm : x
linear        1 f cdist : x tensor
linear        1 f nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss : x tensor reduction=loss_reduction?
linear        1 f nn.functional.layer_norm : x last_shape
linear        1 f nn.functional.pad : x padding
linear        1 f nn.functional.one_hot : index_values
grad          2 m requires_grad_ : leaf
grad          3 m retain_grad : x
number        3 m __len__ __bool__ __float__ __int__ : x
number        2 f result_type : x other
resize        2 i resize : x smaller_shape
resize        1 i set : x other_tensor
"""


@dataclass(frozen=True)
class Op:
    """A name with the forms it may be called in and the kinds of its arguments."""

    family: str
    name: str
    forms: str
    arguments: tuple[str, ...]


def parsed() -> tuple[list[Op], list[float]]:
    """(ops, weights): the weight of a row is shared by its names."""
    ops, weights = [], []
    for row in ROWS.strip().splitlines():
        head, _, arguments = row.partition(" : ")
        family, weight, forms, *names = head.split()
        for name in names:
            ops.append(Op(family, name, forms, tuple(arguments.split())))
            weights.append(float(weight) / len(names) + 0.3)
    return ops, weights


OPS, WEIGHTS = parsed()
EXACT = frozenset(op.name for op in OPS if op.family.startswith("exact"))

"""Where torch offers an op, for declarations that do not say it: PyTorch's generator of bindings decides name by name.

`tools/torch_names.py` records torch's own names, and a test compares them with what the package has.
"""

from __future__ import annotations

from .facts import Surface

# Members of a Flag, looked up once: that takes ten times as long as comparing, for a thousand ops.
_BOTH, _FUNCTION, _METHOD = Surface.BOTH, Surface.FUNCTION, Surface.METHOD
_LAYER, _MODULE, _ATEN = Surface.LAYER, Surface.MODULE, Surface.ATEN

# Ops of torch's modules are named after them: `linalg_det` is torch.linalg.det.
MODULES = ("fft_", "linalg_", "special_")

_LAYERS = frozenset(
    """
    _pad_circular _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d
    adaptive_max_pool3d avg_pool2d avg_pool3d binary_cross_entropy col2im cross_entropy_loss elu elu_
    fractional_max_pool2d fractional_max_pool3d gelu gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh
    hardtanh_ huber_loss im2col l1_loss leaky_relu leaky_relu_ linear log_sigmoid max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d max_unpool3d mish mish_ mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss nll_loss2d nll_loss_nd one_hot pad pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6
    relu6_ replication_pad1d replication_pad2d replication_pad3d rrelu_with_noise rrelu_with_noise_
    scaled_dot_product_attention silu silu_ smooth_l1_loss soft_margin_loss softplus softshrink upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """.split()  # noqa: SIM905  a list would be 400 lines
)
_METHODS_ONLY = frozenset(
    """
    __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__ absolute_ add_ addbmm_
    addcdiv_ addcmul_ addmm_ addr_ arctan2_ atan2_ baddbmm_ bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_
    bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_ copy_ copysign_ cumprod_ cumsum_ digamma_ div_ divide_ eq_
    erfinv_ exponential_ fill_diagonal_ float_power_ floor_divide_ fmod_ ge_ geometric_ greater_ greater_equal_ gt_
    heaviside_ hypot_ igamma_ igammac_ index index_add_ index_copy_ index_fill_ index_reduce_ item le_ lerp_ less_
    less_equal_ lgamma_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ mH mT masked_fill_
    masked_scatter_ mul_ multiply_ mvlgamma_ ne_ new_empty_strided nextafter_ normal_ not_equal_ polygamma_ pow_ put_
    random_ remainder_ renorm_ resize_ scatter_ scatter_add_ scatter_reduce_ set_ sgn_ sign_ squeeze_ sub_ subtract_
    swapaxes_ swapdims_ t_ transpose_ tril_ triu_ true_divide_ uniform_ unsqueeze_
    """.split()  # noqa: SIM905  a list would be 400 lines
)
_FUNCTIONS_ONLY = frozenset(
    """
    _adaptive_avg_pool2d _adaptive_avg_pool3d _amp_update_scale_ _assert_async _batch_norm_impl_index _convolution
    _convolution_mode _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fft_c2c _fft_c2r _fft_r2c _fused_rms_norm
    _grid_sampler_2d_cpu_fallback _index_put_impl_ _log_softmax _lu_with_info _masked_softmax _native_batch_norm_legit
    _native_batch_norm_legit_no_training _pack_padded_sequence _pin_memory _prelu_kernel _reshape_alias_copy _safe_softmax
    _sample_dirichlet _sobol_engine_ff_ _sobol_engine_initialize_state_ _sobol_engine_scramble_ _softmax _standard_gamma
    _unique _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate
    adaptive_avg_pool1d adaptive_max_pool1d alias_copy alpha_dropout alpha_dropout_ as_strided_copy atleast_1d atleast_2d
    atleast_3d avg_pool1d batch_norm binary_cross_entropy_with_logits bucketize celu celu_ channel_shuffle combinations
    constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    detach_copy diagonal_copy dropout dropout_ embedding_renorm_ empty_like expand_copy fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill
    frobenius_norm full_like gradient grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell
    hinge_embedding_loss instance_norm kl_div layer_norm lstm lstm_cell max_pool1d max_pool1d_with_indices max_pool2d
    max_pool3d mkldnn_rnn_layer native_batch_norm native_channel_shuffle native_dropout native_group_norm
    native_layer_norm nuclear_norm ones_like pdist permute_copy pixel_shuffle pixel_unshuffle poisson poisson_nll_loss
    rand_like randint_like randn_like rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell rrelu rrelu_ rsub select_copy
    selu selu_ slice_copy split_copy split_with_sizes_copy squeeze_copy std_mean t_copy tensordot threshold threshold_
    transpose_copy unbind_copy unfold_copy unsqueeze_copy var_mean view_as_complex view_as_complex_copy view_as_real
    view_as_real_copy view_copy zeros_like
    """.split()  # noqa: SIM905  a list would be 400 lines
)
_ATEN_ONLY = frozenset(
    """
    _cdist_forward _linalg_eigvals _local_scalar_dense _native_batch_norm_legit_functional _pdist_forward _reshape_alias
    _sparse_addmm _to_copy _unsafe_view alias lift_fresh log_sigmoid_forward matrix_H multilabel_margin_loss_forward
    nll_loss2d_forward nll_loss_forward nonzero_numpy numpy_T slice
    """.split()  # noqa: SIM905  a list would be 400 lines
)


def surface_of(name: str) -> Surface:
    """Where torch offers the op of a name."""
    if name.endswith("_backward") or name in _ATEN_ONLY:
        return _ATEN
    if name.startswith(MODULES):
        return _MODULE
    if name in _LAYERS:
        return _LAYER
    if name in _METHODS_ONLY:
        return _METHOD
    return _FUNCTION if name in _FUNCTIONS_ONLY else _BOTH


def module_of(name: str, surface: Surface) -> str:
    """The module in which torch's function of an op is found by its name: what pickles and generated code say."""
    if surface is _LAYER:
        return "torch._C._nn"
    return f"torch._C._{name.partition('_')[0]}" if surface is _MODULE else "torch"

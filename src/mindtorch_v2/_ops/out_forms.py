"""Composite ops that torch also offers with `out=`: computed as without it, then stored."""

from __future__ import annotations

from .._dispatch.registry import packets

_NAMES = """
    absolute adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argsort avg_pool1d chain_matmul clip column_stack concat concatenate cross diag diff divide dstack
    fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn
    fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fix float_power frobenius_norm ger greater greater_equal
    hstack inner inverse kron less less_equal linalg_cholesky linalg_cond linalg_det linalg_eigh linalg_eigvals
    linalg_eigvalsh linalg_inv linalg_ldl_factor linalg_lu_factor linalg_matmul linalg_matrix_norm
    linalg_matrix_power linalg_matrix_rank linalg_multi_dot linalg_norm linalg_slogdet linalg_solve linalg_solve_ex linalg_svd
    linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vecdot
    linear log_sigmoid log_softmax lu_solve matmul matrix_power max min
    msort multiply nanmean nanquantile negative not_equal nuclear_norm orgqr outer qr quantile row_stack slogdet
    softmax special_digamma special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1
    special_gammainc special_gammaincc special_gammaln special_i0 special_log1p special_logit special_logsumexp
    special_multigammaln special_ndtr special_polygamma special_psi special_round special_sinc special_xlogy square std
    subtract svd take_along_dim tensordot true_divide var vstack where
"""


def offer() -> None:
    """Give them the argument; called once all ops are declared."""
    for name in _NAMES.split():
        for spec in packets[name].overloads.values():
            if spec.composite:
                spec.tags |= {"out"}

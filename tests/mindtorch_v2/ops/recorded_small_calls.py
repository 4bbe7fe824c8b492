"""What PyTorch 2.13 gives for small calls that random programs brought up; `python recorded_small_calls.py` writes it, with
PyTorch installed."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded_small_calls.json")
PREPARE = """
from torch import bool, int8, int32, int64, uint8, float16, bfloat16, float32, float64, complex64, complex128
from torch.nn import functional as F
inf, nan = float("inf"), float("nan")
T = torch.tensor

def E(*shape, dtype=torch.float32, grad=False):
    return torch.zeros(shape, dtype=dtype).requires_grad_(grad)

def G(values, dtype=torch.float32):
    return T(values, dtype=dtype).requires_grad_()

def slope(function, values, dtype=torch.float32):
    x = G(values, dtype)
    function(x).sum().backward()
    return x.grad

def counting(dtype=torch.float32):
    return torch.arange(24).reshape(2, 3, 4).to(dtype)

# Just above and below the middle of two numbers of float16, which float32 cannot tell from it.
middles = [1 + 2**-11 + 2**-40, 1 + 3 * 2**-11 - 2**-40, 65520 - 1e-9]

def odd_complex():
    return T([complex(inf, 0), complex(0, -inf), complex(nan, inf), complex(nan, 0), 1 + 2j, complex(6e4, 6e4)])
"""
# Statements before the last "; " prepare what is shown.
CASES = """
T([1., 2]).view(int32)
T([1., 2]).requires_grad_().view(int32)
T([1., 2]).requires_grad_().view(float32)
T([1j]).requires_grad_().view(complex64)
x=T([1., 2]); y=x.view(int32); y.fill_(1); (x._version, y._version, y._base is None)
x=T([1., 2]); y=x.view(int32); x.fill_(1); (x._version, y._version)
x=T([1., 2]); y=x[1:].view(int32); y
x=G([1., 2]); y=(x*2).view(float32); y
x=G([1., 2]); y=(x*2).view(float32); y.mul_(2)
torch.conj_physical(T([1.]))
x=T([1]); x.conj_physical_() is x
torch.conj_physical(T([1.]), out=T([2.]))
torch.abs(T([True]))
T(True).abs()
E(0, dtype=bool).abs()
T([True]).abs_()
abs(T([True]))
torch.abs(T([True]), out=T([1]))
torch.abs(T([1j]), out=T([1j]))
T([1j]).abs_()
E(0, dtype=complex64).abs_()
G([1j], complex64).abs_()
torch.absolute(T([True]))
T([1j]).absolute_()
torch.quantile(T([1., 2, 3]), 0.5)
torch.quantile(T([[1., 2, 3]]), T([0.5, .2]), 1)
torch.nanquantile(G([[1., 2, 3]]), T([0.5, .2]), 1)
torch.quantile(G([[1., 2, 3], [3., 4, 5]]), 0.5, 1)
torch.quantile(G([[1., 2, 3], [3., 4, 5]]), 0.5, 1, True)
torch.addcdiv(T([1.]), T([1]), T([2]))
torch.addcdiv(T([1.]), T([1.]), T([2]))
torch.addcdiv(T([1]), T([1.]), T([2]))
torch.addcdiv(T([1]), T([1]), T([2]))
torch.addcdiv(T([1j]), T([1]), T([True]))
torch.addcdiv(T([True]), T([True]), T([True]))
T([1.]).addcdiv_(T([1]), T([2]))
torch.addcdiv(T([1.]), T([1]), T([2]), out=T([1.]))
E(0).cummax(3)
E(0).cummin(1)
E(2, 0).cummin(-4)
T(1j).cummax(0)
T(1j).cummax(2)
T(True).cummin(0)
E(0, dtype=complex64).cummin(0)
T([1j]).cummin(0)
E(0).cumsum(3)
E(0).cumprod(3)
E(0).logcumsumexp(3)
E(0).roll(1, 3)
E(0, 2).roll((1, 2), (3, 1))
E(0, 2).roll((1, 2), (3, ))
E(0, 2).roll((), ())
E(0, 2).roll(1)
E(0, 2).flip(3)
F.pad(E(0), [1, -1])
F.pad(E(0), [-1, -1])
F.pad(E(0), [-1, 1])
F.pad(E(0), [-1, 3])
F.pad(E(1), [-1, -1])
F.pad(E(1), [-3, 3])
F.pad(E(1), [-2, 1])
F.pad(E(2, 0), [1, -1])
F.pad(E(2, 0), [0, 0, -1, -1])
F.pad(E(2, 0), [0, 0, -1, -2])
F.pad(E(2), [-3, 1])
F.pad(E(2), [3, -6])
F.pad(E(2), [3, -5])
F.pad(E(2), [3, -4])
torch.quantile(T(1.), 0.5)
torch.quantile(T(1.), T([0.5]), 0)
torch.quantile(counting(), T([0.5, .2]), 1)
torch.quantile(counting(), T([0.5, .2]), 1, True)
torch.quantile(counting().transpose(0, 2), 0.3, 1, True)
torch.nanquantile(counting().transpose(0, 2), T([.3, .3, .3]), 0)
torch.nanquantile(counting().transpose(0, 2), T([]), 0)
torch.nanquantile(counting().transpose(0, 2), 0.3, 2)
x=counting().requires_grad_(); y=torch.quantile(x, T([.3, .6]), 1); y.sum().backward(); x.grad
x=counting().requires_grad_(); y=torch.nanquantile(x, T([.3, .6])); y.sum().backward(); x.grad
torch.quantile(counting(), 0.3, 2, interpolation='nearest')
torch.quantile(counting(), 0.3, 2, interpolation='midpoint', out=T([1.]))
torch.dot(E(0, dtype=bool), E(0, dtype=bool))
torch.dot(E(0, dtype=float16), E(0, dtype=float16))
torch.dot(E(0, dtype=int32), E(0))
torch.vdot(E(0, dtype=bool), E(0, dtype=bool))
torch.mv(E(2, 0, dtype=bool), E(0, dtype=bool))
torch.mv(E(2, 0, dtype=int32), E(0))
torch.mv(E(0, 2, dtype=int32), E(2))
torch.mv(E(0, 2, dtype=bool), E(2, dtype=bool))
torch.mv(E(2, 2, dtype=bool), E(2, dtype=bool))
torch.mm(E(2, 0, dtype=bool), E(0, 2, dtype=bool))
torch.mm(E(2, 0, dtype=int32), E(0, 2))
torch.mm(E(0, 2, dtype=int32), E(2, 2))
torch.mm(E(0, 2), E(2, 2, dtype=int64))
torch.mm(E(0, 2, dtype=bool), E(2, 2, dtype=bool))
torch.mm(E(2, 2, dtype=bool), E(2, 2, dtype=bool))
torch.bmm(E(1, 2, 0, dtype=int32), E(1, 0, 2))
torch.bmm(E(0, 2, 2, dtype=int32), E(0, 2, 2))
torch.bmm(E(0, 2, 2), E(0, 2, 2, dtype=int64))
torch.bmm(E(1, 2, 0), E(1, 0, 2, dtype=complex64))
torch.bmm(E(0, 2, 2, dtype=bool), E(0, 2, 2, dtype=bool))
torch.bmm(E(1, 2, 0, dtype=bool), E(1, 0, 2, dtype=bool))
torch.baddbmm(E(1, 2, 2), E(1, 2, 0, dtype=int32), E(1, 0, 2))
torch.baddbmm(E(1, 2, 2, dtype=int32), E(1, 2, 0), E(1, 0, 2))
torch.baddbmm(E(0, 2, 2, dtype=int32), E(0, 2, 2), E(0, 2, 2))
torch.baddbmm(E(0, 2, 2), E(0, 2, 2, dtype=int32), E(0, 2, 2))
torch.baddbmm(E(0, 2, 2), E(0, 2, 2), E(0, 2, 2), beta=1j)
torch.baddbmm(E(0, 2, 2, dtype=int64), E(0, 2, 2, dtype=int64), E(0, 2, 2, dtype=int64), beta=1.5)
torch.baddbmm(E(1, 2, 2, dtype=int64), E(1, 2, 0, dtype=int64), E(1, 0, 2, dtype=int64), beta=1.5)
torch.baddbmm(E(1, 2, 2, dtype=int64), E(1, 2, 0, dtype=int64), E(1, 0, 2, dtype=int64), alpha=1.5)
torch.addmm(E(2, 2), E(2, 0, dtype=int32), E(0, 2))
torch.addmm(E(2, 2, dtype=int32), E(2, 0), E(0, 2))
torch.addmm(E(0, 2, dtype=int32), E(0, 2), E(2, 2))
torch.addmm(E(1, 0, dtype=uint8), E(1, 3, dtype=uint8), E(3, 0, dtype=uint8), beta=-0.75)
torch.addmm(E(1, 1, dtype=uint8), E(1, 0, dtype=uint8), E(0, 1, dtype=uint8), beta=-0.75)
torch.addmm(E(1, 1, dtype=uint8), E(1, 0, dtype=uint8), E(0, 1, dtype=uint8), alpha=-0.75)
torch.addmm(E(1, 1, dtype=uint8), E(1, 0, dtype=uint8), E(0, 1, dtype=uint8), alpha=1j)
torch.addmm(E(1, 1, dtype=uint8), E(1, 0, dtype=uint8), E(0, 1, dtype=uint8), beta=1j)
torch.addmm(E(1, 0), E(1, 3), E(3, 0), beta=1j)
torch.addmm(E(1, 0), E(1, 3), E(3, 0), alpha=1j)
torch.addmm(E(1, 1), E(1, 3), E(3, 1), alpha=1j)
torch.addmm(E(1, 1, dtype=int64), E(1, 3, dtype=int64), E(3, 1, dtype=int64), alpha=1.5)
torch.addmv(E(0, dtype=uint8), E(0, 3, dtype=uint8), E(3, dtype=uint8), beta=-0.75)
torch.addmv(E(2, dtype=uint8), E(2, 0, dtype=uint8), E(0, dtype=uint8), beta=-0.75)
torch.addmv(E(2, dtype=uint8), E(2, 0, dtype=uint8), E(0, dtype=uint8), alpha=-0.75)
torch.addmv(E(2), E(2, 0), E(0), alpha=1j)
torch.addmv(E(2), E(2, 0), E(0), beta=1j)
torch.addmv(E(0), E(0, 2), E(2), beta=1j)
torch.addmv(E(0), E(0, 2), E(2), alpha=1j)
torch.addmv(E(2, dtype=bool), E(2, 0, dtype=bool), E(0, dtype=bool))
torch.addmv(E(0, dtype=bool), E(0, 2, dtype=bool), E(2, dtype=bool))
torch.addmv(E(2), E(2, 0, dtype=int64), E(0))
torch.addmv(E(2), E(2, 0), E(0, dtype=int64))
torch.addmv(E(2, dtype=int64), E(2, 0), E(0))
torch.addmv(E(0, dtype=int64), E(0, 2), E(2))
torch.matmul(E(2, 0, dtype=int32), E(0, 2))
torch.matmul(E(0, dtype=int32), E(0))
torch.matmul(E(3, 2, 0, dtype=int32), E(0, 2))
torch.matmul(E(3, 2, 0, dtype=int32), E(0))
torch.matmul(E(3, 2, 0, dtype=int32), E(3, 0, 2))
torch.matmul(E(0, dtype=int32), E(3, 0, 2))
torch.matmul(E(0, dtype=bool), E(0, dtype=bool))
torch.einsum('ij, jk->ik', E(1, 0), E(0, 1, dtype=int64))
torch.einsum('ij, jk->ik', E(1, 0, dtype=int64), E(0, 1))
torch.einsum('ij, jk->ik', E(0, 1, dtype=int64), E(1, 1))
torch.einsum('ij, j->i', E(1, 0, dtype=int64), E(0))
torch.einsum('i, i->', E(0, dtype=int64), E(0))
torch.einsum('i, j->ij', E(0, dtype=int64), E(1))
torch.einsum('i, i->i', E(0, dtype=int64), E(0))
torch.einsum('i, i->', E(0, dtype=bool), E(0, dtype=bool))
torch.cdist(E(0, 2), E(1, 2, dtype=float64))
torch.cdist(E(1, 0), E(1, 0, dtype=float64))
torch.cdist(E(1, 0, dtype=int64), E(1, 0))
torch.cdist(E(0, 1, dtype=int64), E(1, 1))
torch.cdist(E(2, 1, dtype=int64), E(1, 1))
torch.cdist(E(2, 1, dtype=float64), E(1, 1))
torch.cdist(E(2, 1, dtype=float64), E(1, 2))
F.linear(E(0, 2, dtype=int64), E(3, 2))
F.linear(E(2, 0, dtype=int64), E(3, 0))
torch.tensordot(E(2, 0, dtype=int64), E(0, 2), 1)
torch.inner(E(2, 0, dtype=int64), E(2, 0))
torch.outer(E(0, dtype=int64), E(2))
torch.select(torch.ones(2), 0, T([1j]))
torch.select(torch.ones(2), 0, T(1j))
torch.select(torch.ones(2), 0, T([1]))
torch.select(torch.ones(2), 0, T(1.))
torch.ones(2).select(0, torch.ones((2, 3), dtype=complex64))
torch.ones(2).select(0, torch.ones((0, 3), dtype=complex64))
torch.ones(2).select(0, torch.ones((0, 3)))
torch.nan_to_num(torch.ones(2), neginf=T(0j))
torch.nan_to_num(torch.ones(2), neginf=T(1j))
float(T(0j))
float(T(1j))
int(T(2j))
torch.nan_to_num(torch.ones(2), nan=T(1.5))
E(1, dtype=int64).expand(2).nan_to_num_()
E(1).expand(2).nan_to_num_()
E(2)[::2].mul_(nan).nan_to_num_(3)
T([1j, complex('nan+1j')]).nan_to_num_(3)
x=G([1., -2., 0.]); o=G([-1., 2., 3.]); y=torch.copysign(x, o); g=torch.autograd.grad(y.sum(), [x, o], create_graph=True); g
x=G([1., 0.]); w=G([2., 1.]); y=x.clone().copysign_(w); g=torch.autograd.grad(y, [x, w], T([1., 2]), create_graph=True); g
x=G([1., 0.]); w=G([2., 1.]); y=x.clone().copysign_(w); y.sum().backward(create_graph=True); (x.grad, w.grad)
x=T([1, 2]); w=G([2., 1.]); y=torch.copysign(x, w); y.sum().backward(create_graph=True); w.grad
F.hardtanh(T([nan, 2, -3]))
F.hardtanh(T([nan, 2, -3], dtype=float16))
F.hardtanh(T([nan, 2, -3], dtype=float64))
F.hardtanh(T([nan]*9))
F.hardtanh(T(nan))
slope(F.hardtanh, [nan, 2, -3, .5])
slope(F.hardtanh, [nan]*9)
slope(F.relu6, [nan]*9)
x=G(nan); F.hardtanh(x).backward(); x.grad
slope(F.hardtanh, [nan]*3, float64)
slope(F.hardtanh, [nan]*3, bfloat16)
slope(F.hardtanh, [nan]*3, float16)
x=G([[nan]*3]*2); F.hardtanh(x.t()).sum().backward(); x.grad
x=G([[nan, 1, 2, -3, 4]]*2); F.hardtanh(x[:, ::2]).sum().backward(); x.grad
F.hardtanh(T([[nan, 2, -3], [nan, nan, -3]]).t())
F.hardtanh(T([nan, 2, -3, nan, nan, -3])[::2])
F.hardtanh(T([nan]).expand(3))
F.hardtanh(T([nan, inf, -inf], dtype=bfloat16))
F.hardtanh(T([nan, inf, -inf]*11, dtype=bfloat16))
F.hardtanh(T([1, 2]))
F.hardtanh(T([1j]))
F.hardtanh(T([True]))
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.scatter_(0, t2, t3); t1
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.scatter_(0, t2, 1.)
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.scatter_add_(0, t2, t3)
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.scatter_add(0, t2, t3)
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.gather(0, t2)
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.index_add_(0, t2, E(0))
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.index_fill_(0, t2, 1)
t1=E(3); t2=E(0, grad=True); t3=E(3); t1.take(t2)
t1=E(3, dtype=int32); t1.scatter_reduce_(0, E(1, dtype=int64), E(1, grad=True), 'amax')
t1=E(3); t1.scatter_reduce_(0, E(1, dtype=int64), E(1, grad=True), 'amax')
t1=E(3, dtype=int32); t1.scatter_add_(0, E(1, dtype=int64), E(1, grad=True, dtype=float32))
G([1j], complex64).sign_()
G([1j], complex64).floor_()
G([1j], complex64).clamp_(0, 1)
G([1j], complex64).erf_()
G([1j], complex64).remainder_(2)
G([1.]).bitwise_not_()
G([1.]).add_(T([1, 2]))
G([1.]).add_(1j)
G([1.]).lerp_(T([1]), 2)
G([1j], complex64).fmod_(2)
G([1.]).gcd_(T([2.]))
G([1.]).bitwise_and_(2)
G([1.]).scatter_(0, T([5]), 1.)
G([1.]).index_fill_(0, T([5]), 1.)
G([1.]).cumsum_(5)
G([1.]).masked_fill_(T([1]), 1.)
G([1.]).addmm_(T([1]), T([2]))
G([1.]).transpose_(3, 4)
G([1.]).copy_(T([1, 2]))
G([1.]).tril_()
G([1j], complex64).atan2_(T([1j]))
t1=G([0.]); t2=F.layer_norm(t1, [1]); t1.detach_(); t2.backward(T([1.])); t1.grad
t1=G([0.]); t2=t1*2; t1.detach_(); t2.backward(T([1.])); t1.grad
t1=G([0., 3.]); t2=F.layer_norm(t1, [2]); t1.detach_(); t2.backward(T([1., 2.])); t1.grad
t1=G([0., 3.]); t2=torch.softmax(t1, 0); t1.detach_(); t2.backward(T([1., 2.])); t1.grad
t1=G([0., 3.]); t2=t1.cumsum(0); t1.detach_(); t2.backward(T([1., 2.])); t1.grad
t10=T(6); t11=T(0.); t10.lerp(t11, t11)
t10=T(6); t11=T(0.); t10.lerp(t11, T(1.))
t10=T(6.); t11=T(0.); t10.lerp(t11, T(1))
t10=T([6.]); t11=T([0.]); t10.lerp(t11, T(1., dtype=float64))
slope(F.hardshrink, [nan]*3)
slope(F.softshrink, [nan]*3)
x=G([nan]*3); F.threshold(x, 1, 2).sum().backward(); x.grad
slope(F.relu, [nan]*3)
slope(F.leaky_relu, [nan]*3)
slope(F.hardsigmoid, [nan]*3)
slope(F.hardswish, [nan]*3)
slope(F.elu, [nan]*3)
x=G([nan]*3); x.clamp(-1, 1).sum().backward(); x.grad
x=G([nan]*3); x.clamp_min(-1).sum().backward(); x.grad
x=G([1., 2.]); y=x*2; x.requires_grad_(False); y.sum().backward(); x.grad
x=G([1., 2.]); y=x*2; x.requires_grad_(False); x.requires_grad_(); y.sum().backward(); x.grad
x=G([1., 2.]); y=x*2; x.detach_(); x.requires_grad_(); y.sum().backward(); x.grad
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(0)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(torch.full((3,), 0, dtype=complex64)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(1)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(torch.full((3,), 1, dtype=complex64)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(-1)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(torch.full((3,), -1, dtype=complex64)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(1j)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(torch.full((3,), 1j, dtype=complex64)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(0j)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex64).pow(torch.full((3,), 0j, dtype=complex64)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(0)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(torch.full((3,), 0, dtype=complex128)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(1)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(torch.full((3,), 1, dtype=complex128)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(-1)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(torch.full((3,), -1, dtype=complex128)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(1j)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(torch.full((3,), 1j, dtype=complex128)))).all(-1)
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(0j)))
torch.isfinite(torch.view_as_real(E(3, dtype=complex128).pow(torch.full((3,), 0j, dtype=complex128)))).all(-1)
torch._debug_has_internal_overlap(0)
torch.ones(3, dtype=int64).cumprod_(0, dtype=complex64)
torch.ones(3, dtype=complex64).cumprod_(0, dtype=int32)
T([True, False]).cumsum_(0)
T(True).cumsum_(0)
T([1, 2], dtype=int8).cumprod_(0)
T(1j).cumprod(0, dtype=int32)
T([[1.0, 2], [3, 4]]).t().cumsum_(0)
T([1.0, 2]).cumsum_(3)
torch.bucketize(E(0, dtype=complex64), T([1., 2.]))
torch.searchsorted(T([1., 2.]), E(0, dtype=complex64))
torch.searchsorted(E(0, dtype=complex64), T([1j]))
T(1j).mode()
T([1j]).mode()
torch.fft.rfftfreq(0, 1j)
torch.dot(E(1, dtype=bool), E(1, dtype=bool), out=E())
torch.arange(6.).reshape(2, 3).t()[None, T([True, True, False])]
torch.arange(6.).reshape(2, 3).t()[T([True, True, False]), None]
torch.arange(6.).reshape(2, 3).t()[None, T([0, 1])]
torch.arange(6.).reshape(2, 3).t()[T([0, 1])]
torch.arange(6.).reshape(2, 3).t()[T([[0, 1], [1, 2]])]
counting().permute(2, 0, 1)[:, T([0, 1]), None]
counting().permute(2, 0, 1)[T([0, 1]), :, T([0, 1])]
counting().permute(2, 0, 1)[T([[0, 1]]), :, T([[0], [1]])]
counting().permute(2, 0, 1)[:, T([[0, 1]]), T([[0], [1]])]
counting().permute(2, 0, 1)[None, :, T([1])]
counting().permute(2, 0, 1)[:, None, T([1, 0])]
counting().permute(2, 0, 1)[..., T([1, 0])]
counting().permute(2, 0, 1)[..., None, T([1, 0])]
counting().permute(2, 0, 1)[T([1, 0])[:, None], None]
counting().permute(2, 1, 0)[:, :, T([True, False])]
counting().permute(2, 1, 0)[:, :, T([True, True])]
counting().permute(2, 1, 0)[T([1]), None]
counting().permute(2, 1, 0)[T(1), None, :, T([1])]
counting()[:, :, ::2][:, T([0, 2])]
torch.arange(24.).reshape(1, 6, 4).permute(2, 0, 1)[:, :, T([0, 2])]
torch.arange(24.).reshape(1, 6, 4).permute(2, 0, 1)[T([0, 2])]
torch.arange(4.).reshape(2, 2).to(complex64).t().abs()
torch.arange(4.).reshape(2, 2).to(complex64).t().unfold(1, 1, 1).abs()
torch.arange(4.).reshape(2, 2).to(complex64).t()[..., None].exp()
E(1, 0, 2, 1).is_contiguous(memory_format=torch.channels_last)
E(1, 1, 0, 1).is_contiguous(memory_format=torch.channels_last)
E(2, 0, 2, 1).is_contiguous(memory_format=torch.channels_last)
E(0, 3, 2, 2).is_contiguous(memory_format=torch.channels_last)
E(0, 1, 1, 2).is_contiguous(memory_format=torch.channels_last)
E(0, 1, 1, 2).to(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
F.pad(torch.ones(2, 3).t(), [0, 0])
F.pad(torch.ones(2, 3).t(), [-1, 0])
F.pad(torch.ones(2, 3).t(), [1, 0])
F.pad(torch.ones(2, 3, 2).permute(2, 0, 1), [-1, 0])
F.pad(torch.ones(2, 3, 2).permute(2, 0, 1), [0, 0, 0, -1])
F.pad(torch.ones(3).expand(2, 3), [0, 0])
F.pad(torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last), [0, 0])
F.pad(torch.ones(2, 6)[:, ::2], [0, 0])
torch.mean(T(0.), 1, out=T(6))
torch.mean(T([0.]), 1, out=T(6))
torch.mean(T(0.), 0, out=T(6))
torch.sum(T(0.), 1, out=T(6))
torch.amax(T(0.), 1, out=T(6))
torch.scatter_reduce(T([[1j]]), 0, T([[0]]), T([1j]), 'amax')
torch.scatter_reduce(T([[1.]]), 0, T([[0]]), T([1.]), 'amax')
torch.scatter_reduce(T([[1.]]), 0, T([[0]]), T([1.]), 'sum')
torch.scatter_add(T([[1.]]), 0, T([[0]]), T([1.]))
torch.scatter(T([[1.]]), 0, T([[0]]), T([1.]))
torch.scatter_reduce(T([[1.]]), 0, T([0]), T([[1.]]), 'amax')
torch.scatter_reduce(T([1.]), 0, T([[0]]), T([[1.]]), 'amax')
torch.scatter_reduce(T([[1.]]), 0, T([[0]]), T(1.), 'amax')
torch.scatter_reduce(T([[1.]]), 1, T([[0]]), T([1.]), 'amax')
torch.scatter_reduce(T([[1.]]), -1, T([[0]]), T([1.]), 'amax')
torch.scatter_reduce(T([[1.], [2]]), 0, T([[0], [0]]), T([1.]), 'amax')
torch.tensor([-0.75], dtype=uint8)
torch.tensor([-1.75], dtype=uint8)
torch.tensor(-0.75, dtype=uint8)
torch.tensor([300.], dtype=uint8)
torch.tensor([300], dtype=uint8)
torch.tensor([-1], dtype=uint8)
torch.tensor([-300], dtype=uint8)
torch.tensor([-300.], dtype=int8)
torch.tensor([-128.5], dtype=int8)
torch.tensor([1e20], dtype=int64)
torch.tensor([nan], dtype=int64)
torch.tensor([inf], dtype=int32)
torch.tensor([1e10], dtype=int32)
torch.tensor([True, -0.5], dtype=uint8)
torch.tensor([-0.75, 1], dtype=uint8)
torch.tensor([0.0, -0.75, 1], dtype=uint8)
torch.full((2, ), -0.75, dtype=uint8)
torch.scalar_tensor(-0.75, dtype=uint8)
torch.as_tensor([-0.75], dtype=uint8)
torch.tensor([70000.], dtype=float16)
torch.tensor([1j], dtype=float32)
torch.tensor([-0.75], dtype=bool)
torch.tensor([[-0.75, 2], [1, 1]], dtype=uint8)
x=T([1.]); o=G([1.]); y=torch.nextafter(x, o); y.backward(T([1.])); y.backward(T([1.])); o.grad
x=G([1.]); o=G([1.]); y=torch.nextafter(x, o); y.backward(T([1.])); y.backward(T([1.])); o.grad
E(dtype=float64).baddbmm(E(4, 0, 3, dtype=float64), E(4, 3, 1))
torch.baddbmm(E(1, 2, 2), E(1, 2, 2), E(1, 2, 2, dtype=int32))
E(0, 1, dtype=complex64).mode()
torch.cdist(E(1, 2, dtype=float16), E(1, 2))
torch.cdist(E(1, 2, dtype=bfloat16), E(0, 2))
F.layer_norm(torch.arange(6.0, dtype=float64).reshape(3, 2).t(), [3])
F.layer_norm(torch.arange(6.0).reshape(3, 2).t(), [3])
torch.arange(4.0).reshape(2, 2)[T([[1]]).expand(2, 1), T([False, True])]
torch.arange(4.0).reshape(2, 2).t()[T([[1], [0]]), T([False, True])]
torch.arange(8.0).reshape(2, 2, 2).permute(2, 0, 1)[T([[1], [0]]), T([[False, True], [True, True]])]
torch.arange(8.0).reshape(2, 2, 2).permute(2, 0, 1)[:, T([[False, True], [True, True]])]
torch.arange(8.0).reshape(2, 2, 2).permute(2, 0, 1)[T(1), T([True, False])]
torch.div(T([6], dtype=uint8), -1, rounding_mode=None)
torch.div(T([6], dtype=uint8), -1, rounding_mode="floor")
torch.div(T([6], dtype=uint8), 2**70, rounding_mode=None)
T(1., dtype=float16).sub(1j, alpha=-0.5 - 2j)
torch.isposinf(T([1j]).to(torch.complex32))
torch.relu(T([1j]).to(torch.complex32))
(T([0.5], dtype=float16) + 1j).norm(1.0)
torch.bucketize(T(-1), T([6], dtype=uint8))
torch.bucketize(-1, T([2, 3], dtype=uint8))
torch.searchsorted(T([2, 3]), 2.7)
T([], dtype=torch.int16).median()
T([], dtype=int64).nanmedian()
torch.kthvalue(T(1j), 1)
torch.argsort(T([[0.0, 3.0], [0.25, -2.75]]).view(bool))
torch.topk(T([0., 3.]), 0)[1].untyped_storage().nbytes()
T(0j).reshape(1, 1).scatter_reduce_(0, T([[6]]), T([[1j]]), "amin")
T([False]).scatter_reduce(0, T([6]), T([False]), "mean")
x=G([[0.]]); T([[nan, nan]]).scatter_reduce(1, T([[1]]), x, "amax").sum().backward(); x.grad
torch.arange(4.0).reshape(2, 2, 1)[T([[1, 1]]).t()]
torch.arange(4.0).reshape(2, 2, 1)[:, T([[1, 1]]).t()]
x=G([]); torch.autograd.grad(torch.cat([x], 1), x, E(0))
T([1.], dtype=float64).expand(2).ceil_()
T([1j]).expand(2).ceil_()
x=T([0., 3.]); x.heaviside_(x[1])
x=T([0., 3.]); x.heaviside_(x)
T([complex(inf, 0.25), 3 + 4j], dtype=complex64).sgn_()
x=T(3.); x.__imod__(T([2.]))
torch.addmm(T([[1.]]), T([[nan]]), T([[nan]]), alpha=0)
torch.addmm(T([[1.]]), T([[nan]]), T([[nan]]), alpha=0, beta=0)
slope(lambda x: x.log().pow(False), [-1.])
slope(lambda x: x.log().pow(0), [-1.])
slope(lambda x: x.cumprod(0) / x.cumprod(0), [0., 3.])
slope(lambda x: x.cumprod(0) * T([1., 2., 3., 4., 5.]), [2., 0., 3., 0., 5.])
slope(lambda x: torch.as_strided(x.expand(2, 2), [2, 2], [1, 0]).abs(), [[1j, 3 - 4j]], complex64)
x=G([1., 2.]); torch.autograd.grad(x.var([], correction=2), x, create_graph=True)[0].requires_grad
torch.scatter(T([6, 7]), 0, T([1]), T([6]), out=T([6]).expand(3))
torch.frombuffer(bytearray(16), dtype=int8, offset=T([True]).numpy()[0])
T([0.5]).logit(T(1 + 1j))
torch.FloatStorage([T(1 + 1j)])
torch._fused_adagrad_([T([1])], [T([1j])], [T([1.])], [T(1.)], lr=1., lr_decay=0., weight_decay=0., eps=1., maximize=False)
torch._fused_adagrad_([T([1.])], [T([1j])], [T([1.])], [T(1.)], lr=1., lr_decay=0., weight_decay=0., eps=1., maximize=False)
x=G([1., 2.]); y=x * 1; torch.le(E(3, 2), 0., out=y); y.backward(torch.ones(3, 2)); x.grad
x=G([1., 2.]); y=x * 1; torch.le(E(3), 0., out=y); y.backward(torch.ones(3))
x=G([1., 2.]); torch.autograd.grad(x * 1, x, torch.ones(2, dtype=float64))
x=G([[1., 2.]]) * 1; y=x[:]; y.t_(); (x.grad_fn.name(), y.grad_fn.name(), y.shape)
x=G([[1., 2.]]); y=(x * 3)[:]; y.squeeze_(); (y * T([1., 2.])).sum().backward(); x.grad
x=T(0.); y=x.squeeze(); x.set_(G(0.)); (y.requires_grad, x.requires_grad)
x=torch.arange(4.0).reshape(2, 2); torch.cumprod(x, 0, out=x.t())
x=torch.arange(4.0).reshape(2, 2); torch.cumsum(x, 0, out=x)
x=torch.arange(4.0).reshape(2, 2); torch.logcumsumexp(x, 0, out=x.t())
x=torch.arange(4.0).reshape(2, 2); torch.renorm(x, 2, 0, 1.0, out=x.t())
x=torch.arange(4.0).reshape(2, 2); torch.addr(x, x[0], x[1], out=x)
x=torch.arange(4.0).reshape(2, 2); torch.addr(x, T([1., 2.]), T([1., 2.]), out=x)
x=torch.arange(4.0).reshape(2, 2); x.addmm_(x.t(), x).shape
x=torch.arange(4.0).reshape(2, 2); torch.gather(x, 0, T([[0, 1], [1, 0]]), out=x)
x=torch.arange(4.0).reshape(2, 2); torch.index_select(x, 0, T([1, 0]), out=x)
x=torch.arange(4.0).reshape(2, 2); torch.take(x, T([[0, 1], [2, 3]]), out=x.t())
x=torch.arange(4.0).reshape(2, 2); torch.take(x, T([1]), out=x)
((-0.5 - 2j) / T(0., dtype=float16)).sum(dtype=bool)
torch.isfinite(odd_complex().to(torch.complex32))
torch.isinf(odd_complex().to(torch.complex32))
torch.isnan(odd_complex().to(torch.complex32))
torch.isreal(odd_complex().to(torch.complex32))
torch.signbit(odd_complex().to(torch.complex32))
T(middles, dtype=float64).to(float16)
T(middles, dtype=float64).half().float()
T(middles, dtype=float16)
T(middles[0], dtype=float16)
torch.as_tensor(middles, dtype=float16)
torch.zeros(3, dtype=float16).copy_(T(middles, dtype=float64))
torch.zeros(3, dtype=float16).fill_(middles[0])
torch.zeros(3, dtype=float16).fill_(T(middles[1], dtype=float64))
torch.full((2,), middles[1], dtype=float16)
x=torch.zeros(3, dtype=float16); x[:]=T(middles, dtype=float64); x
x=torch.zeros(3, dtype=float16); x[1:]=middles[0]; x
T(middles, dtype=float64).sum(0, dtype=float16)
T(middles[:1], dtype=float64).expand(3).to(float16)
torch.add(T(middles, dtype=float64), 0, out=torch.zeros(3, dtype=float16))
torch.ones(1, dtype=float16).mul_(T(middles[:1], dtype=float64))
T(middles, dtype=float64).to(bfloat16)
T([2**60 + 2**52 + 1, 2**60 + 3 * 2**52 - 1]).to(bfloat16)
T([2049, 32785, 65519, 65520]).to(float16)
import numpy; x=torch.zeros(3); x[0]=numpy.float64(1); x[1:]=numpy.int64(2); x
import numpy; x=torch.zeros(3); x[0]=numpy.float32(1); x
torch.isfinite(T([complex(3e38, 3e38), complex(inf, 1)]))
"""


def shown(value, torch):
    """All that a program can see of a result."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).rpartition(".")[2]
        strides = list(value.stride()) if value.numel() > 1 else ""
        view = " view" if value._base is not None else ""
        grad = " grad" if value.requires_grad else ""
        numbers = [round(one, 5) if isinstance(one, float) else one for one in value.detach().flatten().tolist()]
        return f"{dtype} {list(value.shape)} {strides}{view}{grad} {numbers}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(shown(one, torch) for one in value) + ")"
    return repr(value)


def answers(torch):
    """What each case comes to, by its text."""
    found = {}
    prepared = {"torch": torch}
    exec(PREPARE.replace("from torch", f"from {torch.__name__}"), prepared)
    for case in CASES.strip().splitlines():
        *before, last = case.split("; ")
        names = dict(prepared)
        try:
            for statement in before:
                exec(statement, names)
            found[case] = shown(eval(last, names), torch)
        except Exception as error:
            found[case] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found


if __name__ == "__main__":
    import torch

    RECORDED.write_text(json.dumps(answers(torch), indent=1) + "\n")

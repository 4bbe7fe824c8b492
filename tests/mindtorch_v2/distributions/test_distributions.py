"""distributions: densities against quadrature, samples against moments, and KL against its definition."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D


def T(*values):
    return torch.tensor(values, dtype=torch.float64)


CONTINUOUS = {
    "Normal": (lambda: D.Normal(T(1.0), T(2.0)), -30.0, 30.0),
    "Uniform": (lambda: D.Uniform(T(-1.0), T(2.0)), -1.0, 2.0),
    "Exponential": (lambda: D.Exponential(T(2.0)), 0.0, 30.0),
    "Laplace": (lambda: D.Laplace(T(1.0), T(2.0)), -60.0, 60.0),
    "Gumbel": (lambda: D.Gumbel(T(1.0), T(2.0)), -20.0, 80.0),
    "Gamma": (lambda: D.Gamma(T(3.0), T(2.0)), 1e-9, 30.0),
    "Chi2": (lambda: D.Chi2(T(5.0)), 1e-9, 80.0),
    "StudentT": (lambda: D.StudentT(T(9.0), T(1.0)), -80.0, 80.0),
    "HalfNormal": (lambda: D.HalfNormal(T(2.0)), 0.0, 30.0),
    "Beta": (lambda: D.Beta(T(2.0), T(3.0)), 1e-9, 1 - 1e-9),
    "LogNormal": (lambda: D.LogNormal(T(0.0), T(0.5)), 1e-9, 40.0),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_integrate_to_one_and_have_the_moments_they_say(name):
    make, low, high = CONTINUOUS[name]
    d = make()
    x = torch.linspace(low, high, 200001, dtype=torch.float64)
    density = d.log_prob(x).exp()
    step = (high - low) / 200000
    mean = (x * density).sum().item() * step
    assert density.sum().item() * step == pytest.approx(1.0, abs=2e-3)
    assert d.mean.item() == pytest.approx(mean, abs=1e-2)
    assert d.variance.item() == pytest.approx((((x - mean) ** 2) * density).sum().item() * step, rel=2e-2)
    if name not in ("LogNormal",):
        entropy = -(density * torch.where(density > 0, density, torch.ones_like(density)).log()).sum().item() * step
        assert d.entropy().item() == pytest.approx(entropy, abs=2e-2)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_have_the_moments(name):
    torch.manual_seed(0)
    d = CONTINUOUS[name][0]()
    drawn = d.sample((4000,))
    assert drawn.shape == (4000, 1)
    assert drawn.mean().item() == pytest.approx(d.mean.item(), abs=5 * d.stddev.item() / 60)
    assert not drawn.requires_grad


DISCRETE = {
    "Bernoulli": lambda: D.Bernoulli(T(0.3)),
    "Geometric": lambda: D.Geometric(T(0.3)),
    "Poisson": lambda: D.Poisson(T(3.5)),
    "Binomial": lambda: D.Binomial(6, T(0.3)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_add_up(name):
    torch.manual_seed(0)
    d = DISCRETE[name]()
    values = torch.arange({"Bernoulli": 2, "Binomial": 7}.get(name, 150), dtype=torch.float64)
    chances = d.log_prob(values).exp()
    assert chances.sum().item() == pytest.approx(1.0)
    assert (values * chances).sum().item() == pytest.approx(d.mean.item())
    assert d.sample((4000,)).mean().item() == pytest.approx(d.mean.item(), abs=5 * d.stddev.item() / 60)


def test_categories():
    torch.manual_seed(0)
    d = D.Categorical(torch.tensor([[0.2, 0.3, 0.5], [1.0, 1.0, 2.0]]))
    assert (d.batch_shape, d.event_shape) == ((2,), ())
    torch.testing.assert_close(d.log_prob(torch.tensor([1, 2])).exp(), torch.tensor([0.3, 0.5]))
    drawn = d.sample((2000,))
    assert drawn.shape == (2000, 2)
    assert (drawn == 2).float().mean().item() == pytest.approx(0.5, abs=0.04)
    torch.testing.assert_close(D.Categorical(logits=d.logits).probs, d.probs)
    one_hot = D.OneHotCategorical(torch.tensor([0.2, 0.3, 0.5]))
    assert one_hot.sample((5,)).sum(-1).tolist() == [1.0] * 5
    assert one_hot.log_prob(torch.tensor([0.0, 1.0, 0.0])).exp().item() == pytest.approx(0.3)
    assert D.Multinomial(7, torch.tensor([0.2, 0.8])).sample().sum().item() == 7.0


def test_multivariate_normal():
    torch.manual_seed(0)
    covariance = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)
    d = D.MultivariateNormal(T(0.0, 1.0), covariance)
    x = T(0.3, 0.4)
    off = (x - d.loc).unsqueeze(-1)
    expected = (
        -0.5 * (off.t() @ torch.inverse(covariance) @ off).item()
        - math.log(2 * math.pi)
        - 0.5 * math.log(torch.det(covariance).item())
    )
    assert d.log_prob(x).item() == pytest.approx(expected)
    torch.testing.assert_close(D.MultivariateNormal(d.loc, scale_tril=d.scale_tril).covariance_matrix, covariance)
    drawn = d.sample((5000,))
    torch.testing.assert_close(torch.cov(drawn.t()), covariance, atol=0.15, rtol=0)
    with pytest.raises(ValueError, match="Exactly one"):
        D.MultivariateNormal(d.loc)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: D.Normal(p, 1.0),
        lambda p: D.Gamma(p, torch.ones_like(p)),
        lambda p: D.Exponential(1 / p),
        lambda p: D.Laplace(p, 1.0),
        lambda p: D.Uniform(torch.zeros_like(p), 2 * p),
    ],
)
def test_gradients_of_samples(make):
    torch.manual_seed(0)
    p = T(0.7, 3.0).requires_grad_()
    make(p).rsample((4000,)).mean(0).sum().backward()  # each mean is p, so its derivative is one
    torch.testing.assert_close(p.grad, torch.ones(2, dtype=torch.float64), atol=0.12, rtol=0)


def test_independent_and_transformed():
    base = D.Normal(T(0.0, 1.0), T(1.0, 2.0))
    joint = D.Independent(base, 1)
    x = T(0.3, 0.4)
    assert (joint.batch_shape, joint.event_shape) == ((), (2,))
    assert joint.log_prob(x).item() == pytest.approx(base.log_prob(x).sum().item())
    moved = D.TransformedDistribution(base, [D.AffineTransform(1.0, 2.0), D.TanhTransform()])
    inner = torch.atanh(x)
    expected = base.log_prob((inner - 1) / 2) - math.log(2.0) - torch.log(1 - x**2)
    torch.testing.assert_close(moved.log_prob(x), expected)


@pytest.mark.parametrize(
    "transform",
    [
        D.ExpTransform(),
        D.SigmoidTransform(),
        D.TanhTransform(),
        D.SoftplusTransform(),
        D.AffineTransform(1.0, -2.0),
        D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)]),
    ],
)
def test_transforms_invert_and_know_their_slope(transform):
    x = T(-0.5, 0.3).requires_grad_()
    y = transform(x)
    torch.testing.assert_close(transform.inv(y), x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(transform.log_abs_det_jacobian(x, y), slope.abs().log())


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Normal(T(0.0), T(1.0)), D.Normal(T(1.0), T(2.0))),
        (D.Gamma(T(3.0), T(1.0)), D.Gamma(T(2.0), T(2.0))),
        (D.Exponential(T(1.0)), D.Exponential(T(2.0))),
        (D.Laplace(T(0.0), T(1.0)), D.Laplace(T(1.0), T(2.0))),
        (D.Beta(T(2.0), T(3.0)), D.Beta(T(1.0), T(1.5))),
        (D.Bernoulli(T(0.3)), D.Bernoulli(T(0.6))),
        (D.Poisson(T(3.0)), D.Poisson(T(2.0))),
        (D.Geometric(T(0.4)), D.Geometric(T(0.3))),
    ],
)
def test_kl_is_the_mean_log_ratio(p, q):
    torch.manual_seed(0)
    x = p.sample((20000,))
    assert D.kl_divergence(p, q).item() == pytest.approx((p.log_prob(x) - q.log_prob(x)).mean().item(), abs=0.05)


def test_kl_of_others():
    with pytest.raises(NotImplementedError, match="p type Uniform and q type Laplace"):
        D.kl_divergence(D.Uniform(0.0, 1.0), D.Laplace(1.0, 1.0))
    p, q = D.Categorical(T(0.5, 0.5)), D.Categorical(T(0.25, 0.75))
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: D.Normal(0.0, -1.0),
        lambda: D.Uniform(2.0, 1.0),
        lambda: D.Bernoulli(1.5),
        lambda: D.Bernoulli(),
        lambda: D.Categorical(probs=torch.ones(2), logits=torch.ones(2)),
        lambda: D.Bernoulli(0.5).log_prob(torch.tensor(0.3)),
        lambda: D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2)),
        lambda: D.Normal("a", 1.0),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError):
        call()


def test_expand():
    d = D.Normal(torch.zeros(2), torch.ones(2)).expand((3, 2))
    assert d.batch_shape == d.sample().shape == (3, 2)
    assert D.Independent(D.Normal(torch.zeros(2), 1.0), 1).expand((4,)).sample().shape == (4, 2)


# ---------------------------------------------------------------- half Cauchy, correlation matrices


def test_half_cauchy():
    made = D.HalfCauchy(torch.tensor([1.0, 2.0]))
    torch.manual_seed(0)
    # PyTorch's numbers.
    close = torch.testing.assert_close
    close(made.sample((2,)), torch.tensor([[10.5977, 1.5295], [0.1283, 7.8661]]), atol=1e-4, rtol=1e-4)
    close(made.log_prob(torch.tensor([0.5, 3.0])), torch.tensor([-0.6747, -2.3234]), atol=1e-4, rtol=0)
    close(made.cdf(torch.tensor(0.7)), torch.tensor([0.3888, 0.2143]), atol=1e-4, rtol=0)
    close(made.icdf(torch.tensor(0.3)), torch.tensor([0.5095, 1.0191]), atol=1e-4, rtol=0)
    close(made.entropy(), torch.tensor([1.8379, 2.5310]), atol=1e-4, rtol=0)
    assert made.mean.tolist() == made.variance.tolist() == [math.inf] * 2 and made.mode.tolist() == [0, 0]
    assert repr(made) == "HalfCauchy()" and made.expand((2, 2)).batch_shape == (2, 2)
    with pytest.raises(ValueError, match=r"support \(GreaterThanEq\(lower_bound=0.0\)\)"):
        made.log_prob(torch.tensor([-1.0, 1.0]))


def test_lkj_cholesky_density():
    factors = torch.tensor(
        [
            [[1.0, 0, 0], [-0.20728, 0.97828, 0], [-0.87366, 9.2942e-4, 0.48654]],
            [[1.0, 0, 0], [-0.78358, 0.62130, 0], [-0.043911, -0.92276, 0.38286]],
        ]
    )
    made = D.LKJCholesky(3, 0.5)
    found = made.__class__(3, 0.5, validate_args=False).log_prob(factors)  # printed digits: rows of length one but for 1e-5
    torch.testing.assert_close(found, torch.tensor([-1.8106, -1.5709]), atol=2e-4, rtol=0)
    assert repr(made) == "LKJCholesky(concentration: 0.5)" and made.support is D.constraints.corr_cholesky
    with pytest.raises(ValueError, match="support \\(CorrCholesky"):
        made.log_prob(2 * torch.eye(3))
    with pytest.raises(ValueError, match="^Expected dim to be an integer greater than or equal to 2. Found dim=1.$"):
        D.LKJCholesky(1)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 4.0])
def test_lkj_cholesky_samples(concentration):
    torch.manual_seed(3)
    made = D.LKJCholesky(3, torch.tensor([concentration])).expand((2,))
    factors = made.sample((4000,))
    assert factors.shape == (4000, 2, 3, 3) and bool(made.support.check(factors).all())
    # PyTorch's variances: the squared length of the rows is Beta(1/2, c + 1/2) and Beta(3/2, c), shared by the correlations.
    matrices, c = factors @ factors.mT, concentration
    for (row, column), variance in {(1, 0): 0.5 / (c + 1), (2, 0): 0.75 / (c + 1.5), (2, 1): 0.75 / (c + 1.5)}.items():
        found = matrices[..., row, column]
        assert abs(found.mean().item()) < 0.05
        assert found.var().item() == pytest.approx(variance, rel=0.06)


@pytest.mark.parametrize(
    "constraint, shown",
    [
        (D.constraints.positive, "GreaterThan(lower_bound=0.0)"),
        (D.constraints.nonnegative, "GreaterThanEq(lower_bound=0.0)"),
        (D.constraints.unit_interval, "Interval(lower_bound=0.0, upper_bound=1.0)"),
        (D.constraints.less_than(3), "LessThan(upper_bound=3)"),
        (D.constraints.corr_cholesky, "CorrCholesky()"),
    ],
)
def test_constraints_are_shown_as_torch_shows_them(constraint, shown):
    assert repr(constraint) == shown


def test_negative_binomial():
    made = D.NegativeBinomial(torch.tensor([3.0, 0.5]), probs=torch.tensor([0.25, 0.5]))
    # PyTorch's numbers.
    found = made.log_prob(torch.tensor([2.0, 0.0]))
    torch.testing.assert_close(found, torch.tensor([-1.8439, -0.3466]), atol=1e-4, rtol=0)
    torch.testing.assert_close(made.mean, torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(made.variance, torch.tensor([4 / 3, 1.0]))
    assert made.mode.tolist() == [0.0, 0.0]
    assert D.NegativeBinomial(0, logits=torch.tensor(0.3)).log_prob(torch.tensor(0.0)).item() == 0
    torch.manual_seed(0)
    drawn = made.sample((20000,))
    torch.testing.assert_close(drawn.mean(0), made.mean, atol=0.05, rtol=0)
    torch.testing.assert_close(drawn.var(0), made.variance, atol=0.1, rtol=0)
    with pytest.raises(ValueError, match="HalfOpenInterval\\(lower_bound=0.0, upper_bound=1.0\\)"):
        D.NegativeBinomial(3, probs=torch.tensor(1.0))


def test_kl_of_kinds_that_only_behave_like_distributions():
    class Own:
        pass

    @D.register_kl(Own, D.Normal)
    def _own(p, q):
        return "own"

    assert D.kl_divergence(Own(), D.Normal(0.0, 1.0)) == "own"
    with pytest.raises(TypeError, match="to be a class"):
        D.register_kl(3, D.Normal)

"""GPyTorch and linear_operator: exact, approximate and multitask Gaussian processes."""

import pytest
import torch
from weights import generator, normal

pytest.importorskip("gpytorch", reason="gpytorch is not installed")
import gpytorch
import linear_operator


def points(count=24):
    x = torch.linspace(0, 1, count, dtype=torch.float64)
    return x, torch.sin(x * 6) + 0.1 * torch.tensor(generator("noise").standard_normal(count))


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


KERNELS = {
    "cosine": gpytorch.kernels.CosineKernel,
    "linear": gpytorch.kernels.LinearKernel,
    "matern": lambda: gpytorch.kernels.MaternKernel(nu=1.5),
    "periodic": gpytorch.kernels.PeriodicKernel,
    "rbf": gpytorch.kernels.RBFKernel,
    "rq": gpytorch.kernels.RQKernel,
}


@pytest.mark.parametrize("name", KERNELS)
def test_exact(figures, name):
    x, y = points()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood, KERNELS[name]()).double()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    figures.check("losses", losses)
    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        predicted = likelihood(model(torch.linspace(0.1, 1.2, 7, dtype=torch.float64)))
    figures.check("mean", predicted.mean)
    figures.check("variance", predicted.variance)
    figures.check("confidence", list(predicted.confidence_region()))


def test_approximate(figures):
    class Variational(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(inducing.size(0))
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, inducing, distribution, learn_inducing_locations=True)
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x, y = points()
    model, likelihood = Variational(x[::4].clone()).double(), gpytorch.likelihoods.BernoulliLikelihood()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), (y > 0).double())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    figures.check("losses", losses[1:], tolerance=1e-3)
    assert torch.isfinite(likelihood(model.eval()(x)).mean).all()


def test_multitask(figures):
    class Multitask(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
            self.covar_module = gpytorch.kernels.MultitaskKernel(gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1)
            with torch.no_grad():
                self.covar_module.task_covar_module.covar_factor.copy_(normal("factor", 2, 1))

        def forward(self, x):
            return gpytorch.distributions.MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))

    x, y = points(10)
    y = torch.stack([y, y.cos()], -1)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model = Multitask(x, y, likelihood).double()
    loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
    loss.backward()
    figures.check("loss", loss.item())
    figures.check("gradients", {name: p.grad for name, p in model.named_parameters()}, tolerance=1e-3)


def test_linear_operators(figures):
    matrix = normal("matrix", 6, 6).double()
    dense = linear_operator.to_linear_operator(matrix @ matrix.T + torch.eye(6, dtype=torch.float64))
    diagonal = linear_operator.operators.DiagLinearOperator(normal("diagonal", 6).double().abs())
    both = dense + diagonal
    figures.check("solve", both.solve(normal("right", 6, 2).double()))
    figures.check("logdet", both.logdet())
    figures.check("inv_quad", both.inv_quad_logdet(normal("right", 6, 2).double(), logdet=True))
    kronecker = linear_operator.operators.KroneckerProductLinearOperator(dense, diagonal)
    figures.check("kronecker", kronecker @ normal("wide", 36, 1).double())
    figures.check("cholesky", both.cholesky().to_dense())

"""botorch: models, acquisition functions and their optimization, with quasi-random samples."""

import pytest
import torch
from weights import normal

pytest.importorskip("botorch", reason="botorch is not installed")
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition.multi_objective import qExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
from botorch.utils.sampling import draw_sobol_normal_samples, draw_sobol_samples, manual_seed
from gpytorch.mlls import ExactMarginalLogLikelihood


@pytest.fixture
def model():
    x = normal("x", 10, 2).double().sigmoid()
    y = (x * 6).sin().sum(-1, keepdim=True)
    return SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))


BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)


def test_samples(figures):
    figures.check("points", draw_sobol_samples(BOUNDS, n=4, q=3, seed=5))
    figures.check("normal", draw_sobol_normal_samples(7, 9, seed=3))


def test_fit(figures, model):
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 20}})
    figures.check("parameters", dict(model.named_parameters()), tolerance=1e-3)
    posterior = model.posterior(normal("new", 4, 2).double().sigmoid())
    figures.check("mean", posterior.mean, tolerance=1e-3)
    figures.check("variance", posterior.variance, tolerance=1e-3)


ANALYTIC = {
    "ei": lambda model: ExpectedImprovement(model, best_f=1.0),
    "log ei": lambda model: LogExpectedImprovement(model, best_f=1.0),
    "ucb": lambda model: UpperConfidenceBound(model, beta=0.2),
}
SAMPLED = {
    "qei": lambda model, sampler: qExpectedImprovement(model, 1.0, sampler),
    "qlogei": lambda model, sampler: qLogExpectedImprovement(model, 1.0, sampler),
    "qucb": lambda model, sampler: qUpperConfidenceBound(model, 0.2, sampler),
}


@pytest.mark.parametrize("name", [*ANALYTIC, *SAMPLED])
def test_acquisition(figures, model, name):
    if name in ANALYTIC:
        function, points = ANALYTIC[name](model), normal("candidates", 5, 1, 2)
    else:
        function = SAMPLED[name](model, SobolQMCNormalSampler(torch.Size([32]), seed=7))
        points = normal("candidates", 5, 3, 2)
    points = points.double().sigmoid().requires_grad_()
    value = function(points)
    value.sum().backward()
    figures.check("value", value)
    figures.check("gradient", points.grad)


def test_optimized_candidates(figures, model):
    function = qLogExpectedImprovement(model, 1.0, SobolQMCNormalSampler(torch.Size([16]), seed=7))
    with manual_seed(3):
        candidates, value = optimize_acqf(function, BOUNDS, q=2, num_restarts=2, raw_samples=16, options={"maxiter": 10})
    figures.check("candidates", candidates, tolerance=1e-3)
    figures.check("value", value)


def test_knowledge_gradient(figures, model):
    function = qKnowledgeGradient(model, num_fantasies=4)
    torch.manual_seed(0)
    figures.check("value", function(normal("candidates", 2, 5, 2).double().sigmoid()))


def test_two_objectives(figures):
    x = normal("x", 8, 2).double().sigmoid()
    y = torch.stack([x.sum(-1), (x[:, 0] - x[:, 1]).abs()], -1)
    model = ModelListGP(*(SingleTaskGP(x, y[:, i : i + 1]) for i in range(2)))
    reference = torch.zeros(2, dtype=torch.double)
    function = qExpectedHypervolumeImprovement(
        model,
        reference.tolist(),
        NondominatedPartitioning(reference, y),
        SobolQMCNormalSampler(torch.Size([16]), seed=2),
    )
    figures.check("value", function(normal("candidates", 4, 2, 2).double().sigmoid()))

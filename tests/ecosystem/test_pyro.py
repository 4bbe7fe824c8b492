"""pyro: variational inference, Hamiltonian Monte Carlo, enumeration and its own distributions."""

import pytest
import torch
from weights import normal

pytest.importorskip("pyro", reason="pyro-ppl is not installed")
import pyro
import pyro.distributions as dist
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from pyro.optim import Adam, ClippedAdam


@pytest.fixture(autouse=True)
def _fresh():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


def data():
    x = normal("x", 20, 3)
    return x, x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * normal("noise", 20)


def test_handwritten_guide(figures):
    x, y = data()

    def guide(x, y=None):
        loc = pyro.param("loc", torch.zeros(3))
        spread = pyro.param("spread", torch.ones(3), constraint=dist.constraints.positive)
        pyro.sample("weight", dist.Normal(loc, spread).to_event(1))
        pyro.sample("bias", dist.Delta(pyro.param("b", torch.tensor(0.0))))
        pyro.sample("scale", dist.Delta(pyro.param("s", torch.tensor(1.0), constraint=dist.constraints.positive)))

    svi = SVI(regression, guide, Adam({"lr": 0.05}), Trace_ELBO())
    figures.check("losses", [svi.step(x, y) for _ in range(20)])
    figures.check("parameters", dict(pyro.get_param_store().items()))


@pytest.mark.parametrize("kind", [AutoNormal, AutoMultivariateNormal])
def test_automatic_guides(figures, kind):
    x, y = data()
    guide = kind(regression)
    svi = SVI(regression, guide, ClippedAdam({"lr": 0.02}), Trace_ELBO(num_particles=2))
    figures.check("losses", [svi.step(x, y) for _ in range(10)])
    figures.check("median", guide.median(x, y))
    drawn = Predictive(regression, guide=guide, num_samples=5)(x)
    figures.check("predicted", drawn["y"])


def test_hamiltonian_monte_carlo(figures):
    x, y = data()
    chain = MCMC(NUTS(regression, max_tree_depth=3), num_samples=4, warmup_steps=3, disable_progbar=True)
    chain.run(x, y)
    # Steps are random and chaotic: rounding grows with each.
    figures.check("samples", chain.get_samples(), tolerance=1e-3)


def test_enumerated_mixture(figures):
    points = torch.cat([normal("left", 8) - 3, normal("right", 8) + 3])

    @config_enumerate
    def model(points):
        shares = pyro.sample("shares", dist.Dirichlet(torch.ones(2)))
        with pyro.plate("components", 2):
            locs = pyro.sample("locs", dist.Normal(0.0, 5.0))
        with pyro.plate("points", len(points)):
            chosen = pyro.sample("chosen", dist.Categorical(shares))
            pyro.sample("x", dist.Normal(locs[chosen], 1.0), obs=points)

    guide = pyro.infer.autoguide.AutoDelta(
        pyro.poutine.block(model, expose=["shares", "locs"]),
        init_loc_fn=lambda site: torch.tensor([-1.0, 1.0]) if site["name"] == "locs" else torch.tensor([0.5, 0.5]),
    )
    svi = SVI(model, guide, Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    figures.check("losses", [svi.step(points) for _ in range(15)])
    figures.check("locs", pyro.param("AutoDelta.locs"))


DISTRIBUTIONS = {
    "AsymmetricLaplace": lambda: dist.AsymmetricLaplace(0.5, 1.0, 2.0),
    "BetaBinomial": lambda: dist.BetaBinomial(2.0, 3.0, 10),
    "GammaPoisson": lambda: dist.GammaPoisson(2.0, 3.0),
    "InverseGamma": lambda: dist.InverseGamma(3.0, 1.0),
    "LogNormalNegativeBinomial": lambda: dist.NegativeBinomial(5.0, torch.tensor(0.3)),
    "MaskedMixture": lambda: dist.MaskedMixture(torch.tensor([True, False]), dist.Normal(0.0, 1.0), dist.Normal(4.0, 1.0)),
    "ProjectedNormal": lambda: dist.ProjectedNormal(torch.tensor([1.0, 2.0, 3.0])),
    "SineBivariateVonMises": lambda: dist.VonMises(0.3, 2.0),
    "SkewLogistic": lambda: dist.SkewLogistic(0.0, 1.0, 0.5),
    "Stable": lambda: dist.Stable(1.5, 0.1),
    "Unit": lambda: dist.Unit(torch.tensor([0.5, 1.5])),
    "ZeroInflatedPoisson": lambda: dist.ZeroInflatedPoisson(torch.tensor(3.0), gate=torch.tensor(0.2)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(figures, name):
    kind = DISTRIBUTIONS[name]()
    drawn = kind.sample((6,)) if name != "Unit" else kind.sample()
    figures.check("drawn", drawn, tolerance=1e-3)
    if name != "Stable":
        figures.check("density", kind.log_prob(drawn), tolerance=1e-3)


def test_kl_and_flows(figures):
    base = dist.Normal(torch.zeros(2), torch.ones(2))
    flow = dist.transforms.Spline(2, count_bins=4)
    with torch.no_grad():
        for name, parameter in flow.named_parameters():
            parameter.copy_(normal(name, *parameter.shape))
    moved = dist.TransformedDistribution(base, [flow])
    points = normal("points", 5, 2)
    loss = -moved.log_prob(points).mean()
    loss.backward()
    figures.check("loss", loss)
    figures.check("gradients", [parameter.grad for parameter in flow.parameters()])
    p, q = dist.Normal(0.0, 1.0).expand([3]).to_event(1), dist.Normal(1.0, 2.0).expand([3]).to_event(1)
    figures.check("kl", torch.distributions.kl_divergence(p, q))
    figures.check("kl of delta", torch.distributions.kl_divergence(dist.Delta(torch.tensor(0.4)), dist.Normal(0.0, 1.0)))

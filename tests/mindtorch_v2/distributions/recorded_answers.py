"""What PyTorch 2.13 answers for the rarer distributions, divergences and transforms; `python recorded_answers.py` writes it.

Each case is an expression; the names in it are those of `names(torch)`. Run with PyTorch installed to record again.
"""

from __future__ import annotations

import json
from pathlib import Path

DISTRIBUTIONS = {
    "VonMises": "D.VonMises(T(0.0, 1.0), T(0.5, 4.0))",
    "Weibull": "D.Weibull(T(1.0, 2.0), T(0.7, 3.0))",
    "Pareto": "D.Pareto(T(1.0, 2.0), T(2.5, 3.0))",
    "GeneralizedPareto": "D.GeneralizedPareto(T(0.0, 1.0).float(), T(1.0, 2.0).float(), T(0.2, -0.3).float())",
    "InverseGamma": "D.InverseGamma(T(3.0, 4.0), T(1.0, 2.0))",
    "Kumaraswamy": "D.Kumaraswamy(T(2.0, 1.5), T(3.0, 1.2))",
    "FisherSnedecor": "D.FisherSnedecor(T(3.0, 5.0), T(6.0, 9.0))",
    "LogisticNormal": "D.LogisticNormal(T(0.1, -0.3), T(1.0, 0.5))",
    "RelaxedBernoulli": "D.RelaxedBernoulli(T(0.5), T(0.3, 0.8))",
    "ContinuousBernoulli": "D.ContinuousBernoulli(T(0.3, 0.5))",
    "LowRank": "D.LowRankMultivariateNormal(T(0.0, 1.0), M([[1.0], [0.5]]), T(0.3, 0.4))",
    "Wishart": "D.Wishart(T(4.0).squeeze(), M([[2.0, 0.3], [0.3, 1.0]]))",
}
QUESTIONS = ["mean", "mode", "variance", "entropy()", "support", "batch_shape", "event_shape", "expand((3, 2))", ""]
VALUES = {
    "VonMises": "T(0.3, 2.0)",
    "GeneralizedPareto": "T(0.4, 2.0).float()",
    "Pareto": "T(1.5, 2.5)",
    "LogisticNormal": "T(0.2, 0.3, 0.5)",
}
VALUES |= {"LowRank": "T(0.2, 0.3)", "Wishart": "M([[2.0, 0.5], [0.5, 3.0]])"}
KL = [
    ("D.Normal(T(0.5), T(1.5))", "D.Laplace(T(0.1), T(0.7))"),
    ("D.Normal(T(0.5), T(1.5))", "D.Gumbel(T(0.1), T(0.7))"),
    ("D.Normal(T(0.5), T(1.5))", "D.Beta(T(0.1), T(0.7))"),
    ("D.Laplace(T(0.5), T(1.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Gumbel(T(0.5), T(1.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Gumbel(T(0.5), T(1.5))", "D.Gumbel(T(0.1), T(0.7))"),
    ("D.Cauchy(T(0.5), T(1.5))", "D.Cauchy(T(0.1), T(0.7))"),
    ("D.HalfNormal(T(0.5))", "D.HalfNormal(T(0.1))"),
    ("D.Exponential(T(0.5))", "D.Gamma(T(0.1), T(0.7))"),
    ("D.Exponential(T(0.5))", "D.Gumbel(T(0.1), T(0.7))"),
    ("D.Exponential(T(0.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Exponential(T(0.5))", "D.Uniform(T(0.1), T(0.7))"),
    ("D.Gamma(T(0.5), T(1.5))", "D.Exponential(T(0.7))"),
    ("D.Gamma(T(0.5), T(1.5))", "D.Gumbel(T(0.1), T(0.7))"),
    ("D.Gamma(T(0.5), T(1.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Beta(T(0.5), T(1.5))", "D.Exponential(T(0.7))"),
    ("D.Beta(T(0.5), T(1.5))", "D.Gamma(T(0.1), T(0.7))"),
    ("D.Beta(T(0.5), T(1.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Beta(T(0.5), T(1.5))", "D.Uniform(T(0.0), T(1.7))"),
    ("D.Beta(T(0.5), T(1.5))", "D.ContinuousBernoulli(T(0.3))"),
    ("D.Beta(T(0.5), T(1.5))", "D.Pareto(T(0.3), T(1.0))"),
    ("D.ContinuousBernoulli(T(0.4))", "D.ContinuousBernoulli(T(0.3))"),
    ("D.ContinuousBernoulli(T(0.4))", "D.Exponential(T(0.3))"),
    ("D.ContinuousBernoulli(T(0.4))", "D.Normal(T(0.3), T(0.5))"),
    ("D.Pareto(T(0.5), T(2.5))", "D.Pareto(T(0.1), T(0.7))"),
    ("D.Pareto(T(0.5), T(2.5))", "D.Exponential(T(0.7))"),
    ("D.Pareto(T(0.5), T(2.5))", "D.Gamma(T(0.1), T(0.7))"),
    ("D.Pareto(T(0.5), T(2.5))", "D.Normal(T(0.1), T(0.7))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Beta(T(0.5), T(0.7))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.ContinuousBernoulli(T(0.3))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Exponential(T(0.3))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Gamma(T(0.3), T(0.4))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Gumbel(T(0.3), T(0.4))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Normal(T(0.3), T(0.4))"),
    ("D.Uniform(T(0.2), T(0.6))", "D.Pareto(T(0.1), T(0.4))"),
    ("D.Bernoulli(T(0.2))", "D.Poisson(T(0.6))"),
    ("D.Poisson(T(0.2))", "D.Bernoulli(T(0.6))"),
    (
        "D.LowRankMultivariateNormal(T(0.0, 1.0), M([[1.0], [0.5]]), T(0.3, 0.4))",
        "D.LowRankMultivariateNormal(T(0.5, 1.0), M([[0.3], [0.5]]), T(0.6, 0.4))",
    ),
    (
        "D.LowRankMultivariateNormal(T(0.0, 1.0), M([[1.0], [0.5]]), T(0.3, 0.4))",
        "D.MultivariateNormal(T(0.5, 1.0), M([[1.0, 0.2], [0.2, 2.0]]))",
    ),
    (
        "D.MultivariateNormal(T(0.5, 1.0), M([[1.0, 0.2], [0.2, 2.0]]))",
        "D.LowRankMultivariateNormal(T(0.0, 1.0), M([[1.0], [0.5]]), T(0.3, 0.4))",
    ),
]
TRANSFORMS = {
    "X.StickBreakingTransform()": "T(0.3, -0.5)",
    "X.CorrCholeskyTransform()": "T(0.3, -0.5, 0.8)",
    "X.LowerCholeskyTransform()": "M([[0.1, 0.2], [0.3, 0.4]])",
    "X.PositiveDefiniteTransform()": "M([[0.1, 0.2], [0.3, 0.4]])",
    "X.SoftmaxTransform()": "T(0.3, -0.5)",
    "X.ReshapeTransform((4,), (2, 2))": "T(0.3, -0.5, 1.0, 2.0)",
    "X.IndependentTransform(X.ExpTransform(), 1)": "T(0.3, -0.5)",
    "X.CatTransform([X.ExpTransform(), X.AffineTransform(1.0, -2.0)], dim=0, lengths=[1, 2])": "T(0.3, -0.5, 1.0)",
    "X.StackTransform([X.ExpTransform(), X.TanhTransform()], dim=0)": "T(0.3, -0.5)",
    "X.CumulativeDistributionTransform(D.Normal(0.0, 1.0))": "T(0.3, -0.5)",
    "X.ComposeTransform([X.AffineTransform(1.0, 2.0), X.ExpTransform().inv, X.SigmoidTransform()])": "T(0.3, 0.5)",
    "X.PowerTransform(T(2.0)).inv": "T(0.3, 0.5)",
    "D.biject_to(C.simplex)": "T(0.3, 0.5)",
    "D.transform_to(C.simplex)": "T(0.3, 0.5)",
    "D.biject_to(C.positive)": "T(0.3, 0.5)",
    "D.biject_to(C.interval(1.0, 3.0))": "T(0.3, 0.5)",
    "D.biject_to(C.less_than(2.0))": "T(0.3, 0.5)",
    "D.biject_to(C.unit_interval)": "T(0.3, 0.5)",
    "D.biject_to(C.independent(C.positive, 1))": "T(0.3, 0.5)",
}
CHECKS = {
    "C.symmetric": "M([[1.0, 2.0], [2.0, 1.0]])",
    "C.positive_semidefinite": "M([[1.0, 2.0], [2.0, 1.0]])",
    "C.positive_definite": "M([[2.0, 1.0], [1.0, 2.0]])",
    "C.square": "M([[1.0] * 3] * 2)",
    "C.lower_triangular": "M([[1.0, 0.0], [2.0, -1.0]])",
    "C.lower_cholesky": "M([[1.0, 0.0], [2.0, -1.0]])",
    "C.multinomial(4)": "M([[1.0, 2.0], [3.0, 4.0]])",
    "C.stack([C.positive, C.real])": "M([[1.0, -2.0], [3.0, 4.0]])",
    "C.cat([C.positive, C.unit_interval], lengths=[1, 2])": "T(1.0, 0.5, 1.5)",
    "C.integer_interval(0, 3)": "T(1.0, 0.5, 5.0)",
    "C.half_open_interval(0.0, 1.0)": "T(0.0, 0.5, 1.0)",
    "C.simplex": "M([[0.5, 0.5], [0.5, 0.6]])",
    "C.corr_cholesky": "M([[1.0, 0.0], [0.6, 0.8]])",
    "C.one_hot": "M([[0.0, 1.0], [1.0, 1.0]])",
}


def names(torch):
    """What the expressions are evaluated with."""
    distributions = torch.distributions
    made = {"torch": torch, "D": distributions, "C": distributions.constraints, "X": distributions.transforms}
    made["M"] = lambda rows: torch.tensor(rows, dtype=torch.float64)
    made["T"] = lambda *numbers: torch.tensor(numbers, dtype=torch.float64)
    return made


def plain(value):
    """An answer as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if isinstance(value, int | float | bool | str) else str(value).replace("mindtorch_v2", "torch")


def answer(code, space):
    """The value of an expression, or the type of what it raises."""
    try:
        return plain(eval(code, space))
    except Exception as error:
        return f"EXC {type(error).__name__}"


def cases():
    """All expressions, by name."""
    listed = {}
    for name, made in DISTRIBUTIONS.items():
        made = f"({made})"
        for question in QUESTIONS:
            listed[f"{name} {question}"] = f"{made}.{question}" if question else made
        value = VALUES.get(name, "T(0.4, 0.6)")
        for function in ("log_prob", "cdf"):
            listed[f"{name} {function}"] = f"{made}.{function}({value})"
        listed[f"{name} icdf"] = f"{made}.icdf(T(0.4, 0.6))"
        if name != "Wishart":  # PyTorch takes regular draws for singular ones, and draws again
            listed[f"{name} sample"] = f"(torch.manual_seed(3), {made}.sample((2,)))[1]"
    for first, second in KL:
        listed[f"kl {first} {second}"] = f"D.kl_divergence({first}, {second})"
    for made, value in TRANSFORMS.items():
        listed[f"call {made}"] = f"({made})({value})"
        listed[f"inverse {made}"] = f"({made}).inv(({made})({value}))"
        listed[f"jacobian {made}"] = f"({made}).log_abs_det_jacobian({value}, ({made})({value}))"
        listed[f"shapes {made}"] = f"[({made}).forward_shape({value}.shape), ({made}).domain.event_dim, ({made}).bijective]"
        listed[f"repr {made}"] = made
    for made, value in CHECKS.items():
        listed[f"check {made}"] = f"({made}).check({value})"
        listed[f"of {made}"] = f"[repr({made}), ({made}).is_discrete, ({made}).event_dim]"
    return listed


RECORDED = Path(__file__).with_name("recorded_answers.json")

if __name__ == "__main__":
    import torch

    space = names(torch)
    RECORDED.write_text(json.dumps({name: answer(code, space) for name, code in cases().items()}, indent=0) + "\n")

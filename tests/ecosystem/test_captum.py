"""Captum: attributions of a small convolutional network."""

import pytest
import torch
from weights import fill, normal

pytest.importorskip("captum", reason="captum is not installed")
from captum import attr


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.pool = torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
        self.flat, self.out = torch.nn.Flatten(), torch.nn.Linear(4 * 3 * 3, 3)

    def forward(self, x):
        return self.out(self.flat(self.pool(self.relu(self.conv(x)))))


METHODS = {
    "deep_lift": lambda m: attr.DeepLift(m),
    "deconvolution": lambda m: attr.Deconvolution(m),
    "guided": lambda m: attr.GuidedBackprop(m),
    "gradient": lambda m: attr.InputXGradient(m),
    "integrated": lambda m: attr.IntegratedGradients(m),
    "saliency": lambda m: attr.Saliency(m),
    "ablation": lambda m: attr.FeatureAblation(m),
    "occlusion": lambda m: attr.Occlusion(m),
    "gradcam": lambda m: attr.GuidedGradCam(m, m.conv),
}


@pytest.mark.parametrize("name", METHODS)
def test_attributions(figures, name):
    method = METHODS[name](fill(Network()).eval())
    options = {"sliding_window_shapes": (2, 3, 3)} if name == "occlusion" else {}
    x = normal("x", 2, 2, 8, 8).requires_grad_()
    figures.check("attribution", method.attribute(x, target=torch.tensor([0, 2]), **options), tolerance=1e-3)


def test_layers_and_neurons(figures):
    model, x = fill(Network()).eval(), normal("x", 2, 2, 8, 8)
    figures.check("conductance", attr.LayerConductance(model, model.conv).attribute(x, target=1), tolerance=1e-3)
    figures.check("gradcam", attr.LayerGradCam(model, model.conv).attribute(x, target=1))
    figures.check("activation", attr.LayerActivation(model, model.pool).attribute(x))
    figures.check("neuron", attr.NeuronGradient(model, model.conv).attribute(x, (0, 1, 1)))


def test_noise_and_shapley(figures):
    model, x = fill(Network()).eval(), normal("x", 1, 2, 8, 8)
    torch.manual_seed(2)
    noisy = attr.NoiseTunnel(attr.Saliency(model)).attribute(x, nt_samples=4, target=0)
    figures.check("noise", noisy, tolerance=1e-3)
    groups = (torch.arange(128) // 32).reshape(1, 2, 8, 8)
    torch.manual_seed(3)
    figures.check("shapley", attr.ShapleyValueSampling(model).attribute(x, target=0, feature_mask=groups, n_samples=3))

"""fastai: learners of numbers, pictures and texts, callbacks, schedules, saving."""

import numpy as np
import pytest
import torch
from weights import fill, generator, integers, normal

pytest.importorskip("fastai", reason="fastai is not installed")
from fastai.basics import CrossEntropyLossFlat, DataBlock, DataLoader, DataLoaders, Learner, accuracy
from fastai.callback.all import EarlyStoppingCallback, GradientAccumulation, GradientClip, MixUp, SaveModelCallback
from fastai.optimizer import SGD, Adam, Lamb, RAdam, ranger
from fastai.text.all import AWD_LSTM, get_text_classifier
from fastai.vision.all import (
    CategoryBlock,
    DynamicUnet,
    ImageBlock,
    PILImage,
    RandomSplitter,
    Resize,
    aug_transforms,
    xresnet18,
)


def loaders(shuffle=False):
    train = list(zip(normal("x", 24, 6), integers("y", 0, 3, 24), strict=True))
    valid = list(zip(normal("vx", 8, 6), integers("vy", 0, 3, 8), strict=True))
    return DataLoaders(DataLoader(train, bs=8, shuffle=shuffle), DataLoader(valid, bs=8))


def body():
    return fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))


def values(learn):
    return [list(map(float, row)) for row in learn.recorder.values]


@pytest.mark.parametrize("kind", [Adam, Lamb, RAdam, SGD, ranger])
def test_learner(figures, tmp_path, kind):
    learn = Learner(loaders(), body(), loss_func=CrossEntropyLossFlat(), opt_func=kind, metrics=accuracy, path=tmp_path)
    with learn.no_bar(), learn.no_logging():
        learn.fit_one_cycle(3, 1e-2)
        figures.check("one cycle", values(learn))
        learn.fit_flat_cos(2, 1e-3, wd=0.1)
    figures.check("flat and cosine", values(learn))
    figures.check("rates", learn.recorder.lrs)
    learn.save("model")
    other = Learner(loaders(), body(), loss_func=CrossEntropyLossFlat(), opt_func=kind, path=tmp_path).load("model")
    with other.no_bar(), other.no_logging():
        figures.check("loaded", other.get_preds()[0])


def test_callbacks(figures, tmp_path):
    callbacks = [
        GradientAccumulation(16),
        GradientClip(0.5),
        SaveModelCallback(monitor="valid_loss"),
        EarlyStoppingCallback(patience=3),
        MixUp(0.4),
    ]
    learn = Learner(loaders(shuffle=True), body(), loss_func=CrossEntropyLossFlat(), cbs=callbacks, path=tmp_path)
    with learn.no_bar(), learn.no_logging():
        learn.fit(4, 1e-2)
        figures.check("values", values(learn))
        figures.check("found", list(learn.lr_find(num_it=12, show_plot=False)), tolerance=1e-3)


def test_pictures(figures, tmp_path):
    rng = generator("pictures")
    pictures = [(PILImage.create(rng.integers(0, 255, (40, 48, 3), dtype=np.uint8)), "ab"[i % 2]) for i in range(12)]
    block = DataBlock(
        (ImageBlock, CategoryBlock),
        get_x=lambda i: pictures[i][0],
        get_y=lambda i: pictures[i][1],
        splitter=RandomSplitter(seed=1),
        item_tfms=Resize(32),
        batch_tfms=aug_transforms(size=32),
    )
    data = block.dataloaders(range(len(pictures)), bs=4, num_workers=0, path=tmp_path)
    learn = Learner(data, fill(xresnet18(n_out=2)), loss_func=CrossEntropyLossFlat(), metrics=accuracy)
    x, y = data.one_batch()
    figures.check("batch", torch.Tensor(x), tolerance=1e-3)
    with learn.no_bar(), learn.no_logging():
        learn.fit(1, 1e-4)
    figures.check("values", values(learn), tolerance=1e-3)


def test_unet(figures):
    encoder = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
    )
    model = fill(DynamicUnet(encoder, 2, (32, 32), self_attention=True)).eval()
    x = normal("pictures", 2, 3, 32, 32).requires_grad_()
    result = model(x)
    result.square().mean().backward()
    figures.check("result", result)
    figures.check("gradient", x.grad)


def test_text_classifier(figures):
    config = {
        "emb_sz": 12, "n_hid": 16, "n_layers": 2, "pad_token": 1, "bidir": False, "output_p": 0.0, "hidden_p": 0.0,
        "input_p": 0.0, "embed_p": 0.0, "weight_p": 0.0,
    }  # fmt: skip
    model = fill(get_text_classifier(AWD_LSTM, 50, 3, seq_len=8, config=config, lin_ftrs=[10], ps=[0.0]))
    tokens = integers("tokens", 2, 50, 4, 20)
    result = model(tokens)[0]
    torch.nn.functional.cross_entropy(result, torch.tensor([0, 1, 2, 0])).backward()
    figures.check("result", result)
    figures.check("gradients", {name: p.grad for name, p in model.named_parameters() if p.grad is not None})

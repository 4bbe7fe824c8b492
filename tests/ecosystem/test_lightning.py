"""Lightning: a trainer with callbacks, checkpoints and its profiler; Fabric."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from weights import fill, integers, normal

pytest.importorskip("lightning", reason="lightning is not installed")
import lightning as L
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.profilers import PyTorchProfiler, SimpleProfiler
from torchmetrics.classification import MulticlassAccuracy


class Classifier(L.LightningModule):
    def __init__(self, rate: float = 0.1):
        super().__init__()
        self.save_hyperparameters()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        self.accuracy = MulticlassAccuracy(num_classes=3)

    def forward(self, x):
        return self.body(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        outputs = self(x)
        self.accuracy(outputs, y)
        self.log("val_loss", torch.nn.functional.cross_entropy(outputs, y))
        self.log("val_accuracy", self.accuracy)

    def predict_step(self, batch, index):
        return self(batch[0]).softmax(-1)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.rate, momentum=0.9)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


class Losses(Callback):
    def __init__(self):
        self.losses = []

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.losses.append(outputs["loss"].item())


def loader(name, shuffle=False):
    x = normal(name, 24, 6)
    return DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=shuffle)


def quiet(folder, **options):
    return L.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def test_fit_validate_predict_and_load(figures, tmp_path):
    losses = Losses()
    best = ModelCheckpoint(tmp_path, filename="{epoch}", monitor="val_loss")
    trainer = quiet(tmp_path, max_epochs=3, callbacks=[losses, best, EarlyStopping("val_loss")], gradient_clip_val=1.0)
    model = fill(Classifier())
    trainer.fit(model, loader("train", shuffle=True), loader("val"))
    figures.check("losses", losses.losses)
    figures.check("metrics", {name: value.item() for name, value in trainer.callback_metrics.items()})
    figures.check("weights", list(model.parameters()))
    figures.check("predictions", torch.cat(trainer.predict(model, loader("val"))))
    loaded = Classifier.load_from_checkpoint(best.best_model_path)
    assert loaded.hparams.rate == 0.1
    figures.check("loaded", trainer.validate(loaded, loader("val"), verbose=False))


def test_a_checkpoint_is_resumed(figures, tmp_path):
    first = quiet(tmp_path, max_epochs=1, callbacks=[ModelCheckpoint(tmp_path, filename="first")])
    first.fit(fill(Classifier()), loader("train"), loader("val"))
    model = Classifier()
    second = quiet(tmp_path, max_epochs=2)
    second.fit(model, loader("train"), loader("val"), ckpt_path=tmp_path / "first.ckpt", weights_only=False)
    assert second.global_step == 6
    figures.check("weights", list(model.parameters()))


def test_accumulated_batches_and_mixed_precision(figures, tmp_path):
    model = fill(Classifier(rate=0.05))
    quiet(tmp_path, max_epochs=2, precision="bf16-mixed", accumulate_grad_batches=2).fit(model, loader("train"))
    figures.check("weights", list(model.parameters()), tolerance=2e-2)


def test_pytorch_profiler(tmp_path):
    profiler = PyTorchProfiler(dirpath=tmp_path, filename="profile", schedule=None, row_limit=-1)
    quiet(tmp_path, max_epochs=1, max_steps=6, profiler=profiler).fit(fill(Classifier()), loader("train"), loader("val"))
    text = "".join(path.read_text() for path in tmp_path.glob("*profile*.txt"))
    for name in ("aten::addmm", "[pl][profile]run_training_batch", "[pl][module]"):
        assert name in text, name
    assert list(tmp_path.glob("*.json"))


def test_simple_profiler(tmp_path):
    profiler = SimpleProfiler(dirpath=tmp_path, filename="simple")
    quiet(tmp_path, max_epochs=1, profiler=profiler).fit(fill(Classifier()), loader("train"))
    assert "run_training_batch" in "".join(path.read_text() for path in tmp_path.glob("*simple*.txt"))


def test_fabric(figures, tmp_path):
    fabric = L.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    data = fabric.setup_dataloaders(DataLoader(TensorDataset(normal("x", 16, 6), integers("y", 0, 3, 16)), batch_size=4))
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    figures.check("losses", losses)
    fabric.save(tmp_path / "state.ckpt", {"model": model, "optimizer": optimizer})
    again = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    fabric.load(tmp_path / "state.ckpt", {"model": again})
    figures.check("loaded", list(again.parameters()))

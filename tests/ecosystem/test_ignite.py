"""Ignite: engines, handlers and metrics."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from weights import fill, integers, normal

pytest.importorskip("ignite", reason="pytorch-ignite is not installed")
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, CosineAnnealingScheduler, DiskSaver, EarlyStopping, ProgressBar, Timer
from ignite.metrics import Accuracy, ConfusionMatrix, Fbeta, Loss, Precision, Recall, RunningAverage


def test_training(figures, tmp_path):
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(normal("x", 30, 6), integers("y", 0, 3, 30)), batch_size=10, shuffle=True)
    loss = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, loss)
    precision, recall = Precision(average=False), Recall(average=False)
    metrics = {
        "accuracy": Accuracy(),
        "loss": Loss(loss),
        "f1": Fbeta(1, precision=precision, recall=recall),
        "matrix": ConfusionMatrix(3),
    }
    evaluator = create_supervised_evaluator(model, metrics=metrics)
    RunningAverage(output_transform=lambda out: out).attach(trainer, "running")
    trainer.add_event_handler(Events.ITERATION_STARTED, CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.01, 9))
    saver = Checkpoint({"model": model, "optimizer": optimizer}, DiskSaver(tmp_path, require_empty=False), n_saved=1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(5, lambda e: -e.state.metrics["loss"], trainer))
    timer = Timer(average=True)
    timer.attach(trainer, step=Events.ITERATION_COMPLETED)
    ProgressBar(disable=True).attach(trainer)
    kept = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(loader)
        kept.append({**evaluator.state.metrics, "running": engine.state.metrics["running"]})

    trainer.run(loader, max_epochs=3)
    figures.check("metrics", kept)
    figures.check("weights", list(model.parameters()))
    other = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))
    Checkpoint.load_objects({"model": other}, torch.load(tmp_path / saver.last_checkpoint))
    figures.check("loaded", list(other.parameters()))

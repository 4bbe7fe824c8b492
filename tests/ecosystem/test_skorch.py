"""skorch: networks as scikit-learn estimators."""

import pytest
import torch
from weights import fill, integers, normal

pytest.importorskip("skorch", reason="skorch is not installed")
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EpochScoring, LRScheduler


class Body(torch.nn.Module):
    def __init__(self, hidden=8, outputs=3):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(5, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs))
        fill(self)

    def forward(self, X):
        return self.layers(X)


def test_classifier(figures, tmp_path):
    x, y = normal("x", 40, 5).numpy(), integers("y", 0, 3, 40).numpy()
    saved = Checkpoint(dirname=tmp_path, monitor="valid_loss_best")
    schedule = LRScheduler(torch.optim.lr_scheduler.ExponentialLR, gamma=0.9)
    net = NeuralNetClassifier(
        Body, criterion=torch.nn.CrossEntropyLoss, max_epochs=4, lr=0.1, batch_size=8, callbacks=[saved, schedule], verbose=0
    )
    net.fit(x, y)
    figures.check("train", net.history[:, "train_loss"])
    figures.check("valid", net.history[:, "valid_loss"])
    figures.check("probabilities", net.predict_proba(x))
    net.save_params(f_params=tmp_path / "net.pt")
    other = NeuralNetClassifier(Body, criterion=torch.nn.CrossEntropyLoss).initialize()
    other.load_params(f_params=tmp_path / "net.pt")
    figures.check("loaded", other.predict(x))


def test_regressor_in_a_search(figures):
    x = normal("x", 30, 5).numpy()
    y = x[:, :1] * 2 + 1
    net = NeuralNetRegressor(
        Body,
        module__outputs=1,
        max_epochs=3,
        lr=0.05,
        train_split=None,
        verbose=0,
        optimizer=torch.optim.Adam,
        callbacks=[EpochScoring("r2", on_train=True)],
    )
    search = GridSearchCV(make_pipeline(StandardScaler(), net), {"neuralnetregressor__lr": [0.01, 0.1]}, cv=2, scoring="r2")
    search.fit(x, y)
    figures.check("scores", search.cv_results_["mean_test_score"], tolerance=1e-3)
    assert search.best_params_ == {"neuralnetregressor__lr": 0.1}

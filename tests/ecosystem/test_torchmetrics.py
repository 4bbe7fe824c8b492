"""torchmetrics: metrics of every kind, accumulated over batches."""

import pytest
import torch
from weights import integers, normal

pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
import torchmetrics as tm
import torchmetrics.functional as F
from torchmetrics import classification, clustering, image, regression, retrieval, text


def scores(name, *shape):
    return normal(name, *shape).softmax(-1)


CLASSIFICATION = {
    "accuracy": lambda: classification.MulticlassAccuracy(5),
    "auroc": lambda: classification.MulticlassAUROC(5),
    "average_precision": lambda: classification.MulticlassAveragePrecision(5, thresholds=20),
    "calibration": lambda: classification.MulticlassCalibrationError(5),
    "cohen_kappa": lambda: classification.MulticlassCohenKappa(5),
    "confusion": lambda: classification.MulticlassConfusionMatrix(5, normalize="true"),
    "f1": lambda: classification.MulticlassF1Score(5, average="none"),
    "jaccard": lambda: classification.MulticlassJaccardIndex(5),
    "matthews": lambda: classification.MulticlassMatthewsCorrCoef(5),
    "precision": lambda: classification.MulticlassPrecision(5, top_k=2),
    "roc": lambda: classification.MulticlassROC(5, thresholds=6),
    "specificity": lambda: classification.MulticlassSpecificity(5),
}


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(figures, name):
    metric = CLASSIFICATION[name]()
    for i in range(3):
        step = metric(scores(f"p{i}", 20, 5), integers(f"t{i}", 0, 5, 20))
    figures.check("last", step)
    figures.check("all", metric.compute())
    metric.reset()
    metric.update(scores("again", 20, 5), integers("again", 0, 5, 20))
    figures.check("after reset", metric.compute())


REGRESSION = {
    "concordance": regression.ConcordanceCorrCoef,
    "cosine": regression.CosineSimilarity,
    "explained": regression.ExplainedVariance,
    "kendall": regression.KendallRankCorrCoef,
    "mean_percentage": regression.MeanAbsolutePercentageError,
    "mse": regression.MeanSquaredError,
    "pearson": regression.PearsonCorrCoef,
    "r2": regression.R2Score,
    "spearman": regression.SpearmanCorrCoef,
}


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(figures, name):
    metric = REGRESSION[name]()
    shape = (12, 3) if name == "cosine" else (12,)
    for i in range(3):
        target = normal(f"t{i}", *shape)
        metric.update(target + 0.3 * normal(f"p{i}", *shape), target)
    figures.check("value", metric.compute())


def test_images(figures):
    a = normal("a", 2, 3, 24, 24).sigmoid()
    b = (a + 0.1 * normal("b", 2, 3, 24, 24)).clamp(0, 1)
    figures.check("psnr", image.PeakSignalNoiseRatio(data_range=1.0)(b, a))
    figures.check("ssim", image.StructuralSimilarityIndexMeasure(data_range=1.0)(b, a))
    figures.check("tv", image.TotalVariation()(a))
    figures.check("uqi", image.UniversalImageQualityIndex()(b, a))


def test_retrieval_clustering_and_text(figures):
    indexes = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    target = torch.tensor([False, True, False, True, False, True, False])
    predictions = normal("p", 7).sigmoid()
    figures.check("map", retrieval.RetrievalMAP()(predictions, target, indexes=indexes))
    figures.check("ndcg", retrieval.RetrievalNormalizedDCG()(predictions, target, indexes=indexes))
    figures.check("mi", clustering.MutualInfoScore()(integers("a", 0, 3, 30), integers("b", 0, 3, 30)))
    figures.check("wer", text.WordErrorRate()(["this is a cat", "hello"], ["this is the cat", "hello you"]))
    figures.check("bleu", text.BLEUScore()(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]]))


def test_collections_and_arithmetic(figures):
    metrics = tm.MetricCollection([classification.MulticlassAccuracy(4), classification.MulticlassPrecision(4)], prefix="val_")
    for i in range(2):
        metrics.update(scores(f"p{i}", 10, 4), integers(f"t{i}", 0, 4, 10))
    figures.check("collection", metrics.compute())
    total = tm.MeanMetric() + tm.SumMetric()
    total.update(normal("values", 6))
    figures.check("sum of two", total.compute())
    tracker = tm.MetricTracker(classification.MulticlassAccuracy(4))
    for i in range(3):
        tracker.increment()
        tracker.update(scores(f"q{i}", 10, 4), integers(f"u{i}", 0, 4, 10))
    figures.check("tracked", tracker.compute_all())
    figures.check("functional", F.pairwise_cosine_similarity(normal("x", 4, 5), normal("y", 3, 5)))


def test_state_is_saved(figures):
    metric = classification.MulticlassAccuracy(4)
    metric.persistent(True)
    metric.update(scores("p", 10, 4), integers("t", 0, 4, 10))
    other = classification.MulticlassAccuracy(4)
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    figures.check("value", other.compute())

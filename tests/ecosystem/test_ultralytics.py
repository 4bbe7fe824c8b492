"""ultralytics: models of every task, their losses, training on made-up pictures, validation and prediction."""

import numpy as np
import pytest
import torch
from weights import fill, generator, normal

pytest.importorskip("ultralytics", reason="ultralytics is not installed")
import cv2
from ultralytics import YOLO
from ultralytics.nn.tasks import ClassificationModel, DetectionModel, OBBModel, PoseModel, SegmentationModel
from ultralytics.utils import DEFAULT_CFG

MODELS = {
    "yolov8n": DetectionModel,
    "yolo11n": DetectionModel,
    "yolo26n": DetectionModel,
    "yolo11n-seg": SegmentationModel,
    "yolo11n-pose": PoseModel,
    "yolo11n-obb": OBBModel,
    "yolo11n-cls": ClassificationModel,
}


@pytest.mark.parametrize("name", MODELS)
def test_models(figures, name):
    model = fill(MODELS[name](f"{name}.yaml", verbose=False)).eval()
    with torch.no_grad():
        result = model(normal("picture", 1, 3, 64, 64).sigmoid())
    first = result[0] if isinstance(result, (tuple, list)) else result
    figures.check("result", first[0] if isinstance(first, tuple) else first, tolerance=1e-3)
    figures.check("parameters", sum(parameter.numel() for parameter in model.parameters()))


def test_loss(figures):
    model = fill(DetectionModel("yolo11n.yaml", nc=3, verbose=False)).train()
    model.args = DEFAULT_CFG
    batch = {
        "img": normal("pictures", 2, 3, 64, 64).sigmoid(),
        "cls": torch.tensor([[0.0], [2.0], [1.0]]),
        "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.3], [0.3, 0.6, 0.2, 0.2], [0.6, 0.4, 0.5, 0.5]]),
        "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
    }
    loss, parts = model(batch)
    loss.sum().backward()
    figures.check("parts", parts, tolerance=1e-3)
    figures.check("gradient", model.model[0].conv.weight.grad, tolerance=1e-2)


@pytest.fixture
def pictures(tmp_path):
    """Twelve pictures with a rectangle or two each, and a file that describes them."""
    rng = generator("rectangles")
    for part, count in (("train", 8), ("val", 4)):
        (tmp_path / "images" / part).mkdir(parents=True)
        (tmp_path / "labels" / part).mkdir(parents=True)
        for i in range(count):
            picture = rng.integers(0, 80, (64, 64, 3), dtype=np.uint8)
            lines = []
            for kind in range(1 + i % 2):
                left, top = rng.integers(4, 30, 2)
                width, height = rng.integers(12, 28, 2)
                picture[top : top + height, left : left + width] = (250, 40, 40) if kind else (40, 250, 40)
                lines.append(f"{kind} {(left + width / 2) / 64} {(top + height / 2) / 64} {width / 64} {height / 64}")
            cv2.imwrite(str(tmp_path / "images" / part / f"{i}.png"), picture)
            (tmp_path / "labels" / part / f"{i}.txt").write_text("\n".join(lines))
    described = tmp_path / "data.yaml"
    described.write_text(f"path: {tmp_path}\ntrain: images/train\nval: images/val\nnames: [green, red]\n")
    return described


def test_training(figures, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = YOLO("yolo11n.yaml", verbose=False)
    fill(model.model)
    seen = []
    model.add_callback("on_train_batch_end", lambda trainer: seen.append([float(part) for part in trainer.loss_items.values()]))
    model.train(
        data=str(pictures), epochs=2, imgsz=64, batch=4, workers=0, device="cpu", seed=0, deterministic=True, amp=False,
        plots=False, optimizer="SGD", lr0=1e-3, warmup_epochs=0, project=str(tmp_path), name="run", verbose=False, val=True,
    )  # fmt: skip
    figures.check("losses", seen, tolerance=1e-3)
    trained = YOLO(tmp_path / "run" / "weights" / "last.pt")
    figures.check("loaded", next(iter(trained.model.parameters())).float(), tolerance=1e-3)
    found = trained.predict(str(tmp_path / "images" / "val" / "0.png"), imgsz=64, conf=0.0001, verbose=False, device="cpu")
    assert found[0].boxes.xyxy.shape[-1] == 4

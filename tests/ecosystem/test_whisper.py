"""Whisper: spectrograms, the model, decoding. Its weights are not downloaded: a small model is filled."""

import pytest
import torch
from weights import fill, integers, normal

whisper = pytest.importorskip("whisper", reason="openai-whisper is not installed")


def small_model():
    sizes = whisper.model.ModelDimensions(
        n_mels=80,
        n_audio_ctx=1500,
        n_audio_state=32,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=51865,
        n_text_ctx=64,
        n_text_state=32,
        n_text_head=2,
        n_text_layer=2,
    )
    return fill(whisper.model.Whisper(sizes)).eval()


def test_spectrogram(figures):
    figures.check("mel", whisper.log_mel_spectrogram(normal("audio", 16000) * 0.1))
    figures.check("padded", whisper.pad_or_trim(normal("audio", 1000), 1500))


def test_model(figures):
    model = small_model()
    mel, tokens = normal("mel", 1, 80, 3000), integers("tokens", 0, 51865, 1, 6)
    with torch.no_grad():
        figures.check("audio", model.embed_audio(mel), tolerance=1e-3)
        figures.check("logits", model(mel, tokens), tolerance=1e-3)


def test_decoding(figures):
    options = whisper.DecodingOptions(language="en", without_timestamps=True, fp16=False, sample_len=6)
    result = whisper.decode(small_model(), normal("mel", 80, 3000), options)
    figures.check("tokens", result.tokens)
    figures.check("log probability", result.avg_logprob, tolerance=1e-3)

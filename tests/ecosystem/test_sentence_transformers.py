"""sentence-transformers: embeddings, similarities and losses of a small model."""

import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.models import Pooling, Transformer
from test_transformers import small_bert, tokenizer
from transformers import BertModel

SENTENCES = ["the cat sat on the mat", "a good dog ran fast", "the bad dog sat"]


def small_model(folder):
    small_bert(BertModel).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    words = Transformer(str(folder), max_seq_length=16)
    return SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension())], device="cpu")


def test_embeddings(figures, tmp_path):
    model = small_model(tmp_path / "words")
    vectors = model.encode(SENTENCES, convert_to_tensor=True, show_progress_bar=False)
    figures.check("vectors", vectors)
    figures.check("similarities", model.similarity(vectors, vectors))
    figures.check("found", [hit["corpus_id"] for hit in util.semantic_search(vectors[:1], vectors)[0]])
    model.save(str(tmp_path / "model"))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    again = loaded.encode(SENTENCES, convert_to_tensor=True, show_progress_bar=False)
    torch.testing.assert_close(again, vectors, rtol=1e-5, atol=1e-5)


def test_a_loss(figures, tmp_path):
    model = small_model(tmp_path / "words").train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    loss = losses.MultipleNegativesRankingLoss(model)
    features = [model.tokenize(SENTENCES), model.tokenize(SENTENCES[::-1])]
    value = loss(features, None)
    value.backward()
    figures.check("loss", value.item())
    figures.check("gradient", model[0].auto_model.embeddings.word_embeddings.weight.grad)

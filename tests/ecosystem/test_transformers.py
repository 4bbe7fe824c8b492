"""transformers: small models of many architectures, Trainer, pipelines, ways to generate."""

import pytest
import torch
import transformers
from architectures import build, exercise
from weights import fill, integers

# Of every kind; sweep.py tries all that there are.
ARCHITECTURES = [
    "albert", "bart", "bert", "bloom", "clip", "cohere", "convnext", "deberta-v2", "deit", "dinov2", "distilbert",
    "electra", "falcon", "funnel", "gemma", "gemma2", "gpt2", "gpt_neox", "granite", "hubert", "layoutlm", "llama",
    "longformer", "marian", "mistral", "mixtral", "mobilebert", "mobilevit", "mpt", "mt5", "olmoe", "opt", "pegasus",
    "phi3", "qwen2", "qwen3", "qwen3_moe", "regnet", "resnet", "roberta", "segformer", "siglip", "squeezebert",
    "starcoder2", "switch_transformers", "t5", "vit", "wav2vec2", "whisper", "xlnet",
]  # fmt: skip


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(figures, name, tmp_path):
    """Forward, backward, a step of AdamW, greedy generation where there is any, saving and loading."""
    for key, value in exercise(build(name), tmp_path).items():
        figures.check(key, value)


def small_llama():
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    config = transformers.LlamaConfig(vocab_size=99, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, **sizes)
    return fill(transformers.LlamaForCausalLM(config))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("greedy", dict(do_sample=False)),
        ("beams", dict(do_sample=False, num_beams=3)),
        ("sampled", dict(do_sample=True, top_k=20, top_p=0.9, temperature=0.8)),
        ("penalties", dict(do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2)),
        ("static cache", dict(do_sample=False, cache_implementation="static")),
    ],
)
def test_generate(figures, name, options):
    model = small_llama().eval()
    prompt = integers("prompt", 3, 99, 2, 5)
    torch.manual_seed(1)
    figures.check(
        name, model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, pad_token_id=0, **options)
    )


def test_trainer(figures, tmp_path):
    model = small_llama()
    rows = [{"input_ids": row, "labels": row} for row in integers("rows", 3, 99, 16, 8)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=4, per_device_train_batch_size=4, learning_rate=1e-3, logging_steps=1, report_to=[],
        save_steps=2, disable_tqdm=True, use_cpu=True, weight_decay=0.1, lr_scheduler_type="cosine", warmup_steps=1, seed=3,
    )  # fmt: skip
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:4])
    trainer.train()
    history = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    figures.check("losses", history)
    figures.check("evaluation", trainer.evaluate()["eval_loss"])
    assert (tmp_path / "checkpoint-4" / "model.safetensors").exists()
    again = transformers.Trainer(model=small_llama(), args=arguments, train_dataset=rows)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    figures.check("weights after resuming", again.model.lm_head.weight)


WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "fast", "slow", "good", "bad"]


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def small_bert(kind):
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    return fill(kind(transformers.BertConfig(vocab_size=17, max_position_embeddings=64, **sizes))).eval()


def test_pipelines(figures):
    sentences = ["the cat sat on the mat", "a bad dog"]
    classifier = transformers.pipeline(
        "text-classification", model=small_bert(transformers.BertForSequenceClassification), tokenizer=tokenizer()
    )
    answers = classifier(sentences, top_k=None)
    figures.check("labels", [[entry["label"] for entry in answer] for answer in answers])
    figures.check("scores", [[entry["score"] for entry in answer] for answer in answers])
    mask = transformers.pipeline("fill-mask", model=small_bert(transformers.BertForMaskedLM), tokenizer=tokenizer())
    figures.check("filled", [entry["token_str"] for entry in mask("the cat [MASK] on the mat")])
    features = transformers.pipeline("feature-extraction", model=small_bert(transformers.BertModel), tokenizer=tokenizer())
    figures.check("features", torch.tensor(features("a good cat")))

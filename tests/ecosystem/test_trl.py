"""trl: supervised fine-tuning of a small model."""

from datasets import Dataset
from test_transformers import small_llama, tokenizer
from trl import SFTConfig, SFTTrainer


def test_supervised_fine_tuning(figures, tmp_path):
    texts = ["the cat sat on the mat", "a good dog ran fast", "the bad dog sat", "a slow cat ran on the mat"] * 4
    arguments = SFTConfig(
        output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=4, learning_rate=1e-3, logging_steps=1, report_to=[],
        use_cpu=True, max_length=16, disable_tqdm=True, save_strategy="no", bf16=False, gradient_checkpointing=False, seed=3,
    )  # fmt: skip
    words = tokenizer()
    words.eos_token = "[SEP]"
    model = small_llama()
    trainer = SFTTrainer(model=model, args=arguments, train_dataset=Dataset.from_dict({"text": texts}), processing_class=words)
    trainer.train()
    figures.check("losses", [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    figures.check("weights", model.lm_head.weight)

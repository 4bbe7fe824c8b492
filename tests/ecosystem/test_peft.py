"""peft: adapters of several kinds on a small model, trained, merged, saved and loaded."""

import peft
import pytest
import torch
from test_transformers import small_llama
from weights import fill, integers

KINDS = {
    "lora": lambda: peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
    "dora": lambda: peft.LoraConfig(r=4, use_dora=True, target_modules=["q_proj"], task_type="CAUSAL_LM"),
    "ia3": lambda: peft.IA3Config(
        target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"], task_type="CAUSAL_LM"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_adapter(figures, kind, tmp_path):
    model = peft.get_peft_model(small_llama(), KINDS[kind]())
    fill(model)
    trainable = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    figures.check("trainable", len(trainable))
    ids = integers("ids", 3, 99, 2, 6)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    figures.check("losses", losses)
    model.save_pretrained(tmp_path)
    base = small_llama()
    with torch.no_grad():
        kept = {name.replace("base_model.model.", "").replace(".base_layer", ""): p for name, p in model.named_parameters()}
        for name, parameter in base.named_parameters():
            parameter.copy_(kept.get(name, parameter))
    loaded = peft.PeftModel.from_pretrained(base, tmp_path).eval()
    with torch.no_grad():
        again = loaded(input_ids=ids).logits
        torch.testing.assert_close(again, model.eval()(input_ids=ids).logits, rtol=1e-4, atol=1e-4)
    figures.check("logits", again)
    if kind == "lora":
        merged = loaded.merge_and_unload()
        with torch.no_grad():
            torch.testing.assert_close(merged(input_ids=ids).logits, again, rtol=1e-4, atol=1e-4)

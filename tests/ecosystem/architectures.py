"""Small models of transformers' architectures, built from their configurations alone, and what is done with each.

A configuration is made small by the names of its fields: every hidden size a few dozen, two layers, four heads. Inputs follow
from the names in the signature of `forward`. What cannot be built this way says so when it is asked for.
"""

from __future__ import annotations

import inspect
import math
from contextlib import suppress
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto
from weights import fill, integers, normal

BATCH, LENGTH, VOCABULARY = 2, 7, 99

# By the name of a field: what it becomes. Fields of these names are set wherever a configuration has them as an int.
SIZES = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "word_embed_proj_dim": 32, "emb_dim": 32,
    "embedding_size": 32, "encoder_hidden_size": 32, "decoder_hidden_size": 32, "projection_dim": 16, "hidden_dim": 32,
    "intermediate_size": 48, "ffn_dim": 48, "d_ff": 48, "n_inner": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "d_inner": 48, "dim_feedforward": 48, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "d_embed": 32,
    "num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_encoder_layers": 2, "num_decoder_layers": 2, "depth": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4,
    "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "num_kv_heads": 2,
    "head_dim": 8, "d_kv": 8, "d_head": 8, "kv_channels": 8, "vocab_size": VOCABULARY, "max_position_embeddings": 64,
    "n_positions": 64, "max_source_positions": 64, "max_target_positions": 64, "n_ctx": 64, "type_vocab_size": 2,
    "image_size": 32, "patch_size": 8, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "num_experts_per_token": 2, "moe_num_experts": 4,
    "n_group": 1, "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "qk_head_dim": 16, "v_head_dim": 8, "sliding_window": 4, "state_size": 8,
    "first_k_dense_replace": 1, "rotary_dim": 8, "neck_hidden_size": 16, "fusion_hidden_size": 16, "hidden_dims": 16,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "embedding_dim": 32, "n_embed": 32, "stem_width": 8,
    "codevector_dim": 16, "proj_codevector_dim": 16, "classifier_proj_size": 16, "num_codevectors_per_group": 8,
    "num_queries": 5, "decoder_num_hidden_layers": 2, "encoder_num_hidden_layers": 2,
}  # fmt: skip
# By the name of a field that lists a size for each stage, of which there stay as many as there are.
LISTS = {
    "depths": [1, 1, 2, 1], "hidden_sizes": [8, 16, 24, 32], "embed_dims": [8, 16, 24, 32], "num_blocks": [1, 1, 2, 1],
    "layers": [1, 1, 1, 1], "conv_dim": [16], "tdnn_dim": [16], "embed_dim": [16, 32, 48],
    "num_heads": [2, 2, 4, 4], "num_attention_heads": [2, 2, 2, 2],
}  # fmt: skip
# Token ids have to be smaller than the vocabulary.
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "cls_token_id", "sep_token_id")

_STAGES = {"image_size": 64, "patch_size": 4, "depths": [1, 1, 1, 1]}
# What the names of fields do not tell, by model type.
CHANGES: dict[str, dict[str, Any]] = {
    "convnext": _STAGES,
    "convnextv2": _STAGES,
    "mamba2": {"num_heads": 8, "n_groups": 1},
    "rwkv": {"attention_hidden_size": 32},
    "swin": _STAGES | {"window_size": 4, "embed_dim": 16, "num_heads": [2, 2, 4, 4]},
    "swinv2": _STAGES | {"window_size": 4, "embed_dim": 16, "num_heads": [2, 2, 4, 4]},
}

# The kinds of models, most telling first: the first that has the configuration's class is built.
KINDS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_CTC_MAPPING", "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING", "MODEL_FOR_OBJECT_DETECTION_MAPPING",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING", "MODEL_FOR_DEPTH_ESTIMATION_MAPPING", "MODEL_FOR_PRETRAINING_MAPPING",
    "MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING", "MODEL_MAPPING",
)  # fmt: skip


def architectures() -> list[str]:
    """The model types that transformers has a model for."""
    return sorted(name for name in CONFIG_MAPPING if _kind(CONFIG_MAPPING[name]) is not None)


def _kind(config_class: type) -> Any:
    """The first of KINDS with a model of that configuration."""
    mappings = (getattr(modeling_auto, kind, {}) for kind in KINDS)
    return next((mapping for mapping in mappings if config_class in mapping), None)


def _model_class(config_class: type) -> type:
    found = _kind(config_class)[config_class]
    return found[0] if isinstance(found, tuple) else found


def shrink(config: Any) -> Any:
    """Make a configuration small, in place, and those inside of it."""
    for name, value in list(vars(config).items()):
        if isinstance(value, transformers.PretrainedConfig):
            shrink(value)
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int) and name in SIZES:
            _set(config, name, SIZES[name])
        elif name in TOKENS and isinstance(value, (int, list)):
            _set(config, name, TOKENS.index(name) % 3)
        elif name.endswith(("_token_id", "_token_index")):
            if isinstance(value, int) and value >= VOCABULARY:
                _set(config, name, VOCABULARY - 1 - len(name) % 5)
        elif isinstance(value, (list, tuple)) and name in LISTS and value:
            _set(config, name, (LISTS[name] * 8)[: len(value)])
        elif isinstance(value, list) and name in ("layer_types", "block_types", "layers_block_type"):
            _set(config, name, value[:2])
        elif isinstance(value, float) and ("dropout" in name or "drop_" in name or "layerdrop" in name):
            _set(config, name, 0.0)
    return config


def _set(config: Any, name: str, value: Any) -> None:
    with suppress(AttributeError, NotImplementedError):  # a property that follows from other fields
        setattr(config, name, value)


def small_config(model_type: str) -> Any:
    """A small configuration of a model type."""
    kind = CONFIG_MAPPING[model_type]
    changes = CHANGES.get(model_type, {})
    default, config = kind(), shrink(kind(**changes))
    known = inspect.signature(kind.__init__).parameters
    changed = {
        name: value for name, value in vars(config).items() if name in known and value != getattr(default, name, None)
    } | changes
    with suppress(
        Exception
    ):  # made anew, fields that follow from others fit them; not all can be made from all of their fields
        config = kind(**changed)
    for name, value in changes.items():
        setattr(config, name, value)
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    return config


def build(model_type: str) -> Any:
    """The model, in evaluation mode, with weights that follow from their names."""
    config = small_config(model_type)
    model = _model_class(type(config))(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > 20_000_000:
        raise ValueError(f"{model_type}: {count} parameters are too many for a small model")
    return fill(model).eval()


def inputs(model: Any) -> dict[str, Any]:
    """Arguments of `forward`, by their names."""
    names = inspect.signature(model.forward).parameters
    config = model.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    vocabulary = min(VOCABULARY, getattr(text, "vocab_size", None) or VOCABULARY)
    made: dict[str, Any] = {}
    if "input_ids" in names:
        made["input_ids"] = integers("input_ids", 3, vocabulary - 8, BATCH, LENGTH)
        if "attention_mask" in names:
            made["attention_mask"] = torch.ones(BATCH, LENGTH, dtype=torch.int64)
        if "decoder_input_ids" in names and getattr(config, "is_encoder_decoder", False):
            made["decoder_input_ids"] = integers("decoder_input_ids", 3, vocabulary - 8, BATCH, LENGTH - 2)
    main = model.main_input_name
    vision = getattr(config, "vision_config", config)
    if "pixel_values" in names and (main == "pixel_values" or "input_ids" not in names or hasattr(model, "visual_projection")):
        size = getattr(vision, "image_size", 32) or 32
        size = size if isinstance(size, (tuple, list)) else (size, size)
        channels = getattr(vision, "num_channels", 3) or 3
        made["pixel_values"] = normal("pixel_values", BATCH, channels, *size)
    if "input_values" in names and main == "input_values":
        shape = (
            (BATCH, config.max_length, config.num_mel_bins)
            if hasattr(config, "num_mel_bins") and hasattr(config, "frequency_stride")
            else (BATCH, 1600)
        )
        made["input_values"] = normal("input_values", *shape)
    if "input_features" in names and main == "input_features":
        bins = (
            getattr(config, "num_mel_bins", None)
            or getattr(config, "feature_projection_input_dim", None)
            or getattr(config, "input_feat_per_channel", 80)
        )
        positions = 2 * getattr(config, "max_source_positions", 32)
        shape = (BATCH, bins, positions) if model.config.model_type in ("whisper",) else (BATCH, 64, bins)
        made["input_features"] = normal("input_features", *shape)
        if "decoder_input_ids" in names:
            made["decoder_input_ids"] = integers("decoder_input_ids", 3, vocabulary - 8, BATCH, LENGTH - 2)
    if "bbox" in names:
        made["bbox"] = torch.zeros(BATCH, LENGTH, 4, dtype=torch.int64)
    return made


def tensors(output: Any) -> list[Any]:
    """The floating tensors of a model's output, in order."""
    if hasattr(output, "is_floating_point"):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        return [found for value in output.values() for found in tensors(value)]
    if isinstance(output, (list, tuple)):
        return [found for value in output for found in tensors(value)]
    return []


def _loss(output: Any) -> Any:
    """A number that every output tensor has a part in."""
    parts = [found.float().pow(2).mean() for found in tensors(output) if found.numel() and found.requires_grad]
    return sum(parts[1:], parts[0])


def exercise(model: Any, folder: Any) -> dict[str, Any]:
    """Forward, backward, a step of AdamW, greedy generation, saving and loading; returns their figures."""
    arguments = inputs(model)
    output = model(**arguments)
    figures: dict[str, Any] = {"forward": tensors(output)[:3], "class": type(model).__name__}
    loss = _loss(output)
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    figures["loss"] = loss.item()
    figures["gradients"] = len(gradients)
    figures["gradient size"] = math.sqrt(sum(g.double().pow(2).sum().item() for g in gradients.values()))
    for name in sorted(gradients)[:: max(1, len(gradients) // 4)]:
        figures[f"gradient of {name}"] = gradients[name]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimizer.step()
    with torch.no_grad():
        figures["loss after a step"] = _loss_value(model(**arguments))
        if model.can_generate():
            prompt = {name: value for name, value in arguments.items() if not name.startswith("decoder_")}
            generated = model.generate(**prompt, max_new_tokens=4, min_new_tokens=4, do_sample=False, num_beams=1)
            figures["generated"] = generated.tolist()
    model.save_pretrained(folder)
    loaded = type(model).from_pretrained(folder).eval()
    with torch.no_grad():
        again = _loss_value(loaded(**arguments))
    assert math.isclose(again, figures["loss after a step"], rel_tol=1e-5, abs_tol=1e-5), (again, figures["loss after a step"])
    return figures


def _loss_value(output: Any) -> float:
    return sum(found.float().pow(2).mean().item() for found in tensors(output) if found.numel())

"""help(torch.softmax): every public op has a text of its own with an example, and the examples run."""

from __future__ import annotations

import doctest

import pytest

import mindtorch_v2 as torch
import mindtorch_v2._ops.reduction.histogramdd
import mindtorch_v2.special
from mindtorch_v2._dispatch.registry import Packet, packets


def is_public(name: str, packet: Packet) -> bool:
    """In-place forms have the text of the form they were made from, backward ops are called by the engine alone."""
    return (
        not name.startswith("_")
        and "::" not in name
        and not name.endswith(("_", "_backward"))
        and not any((spec.doc or "").startswith("Alias of") for spec in packet)
    )


PUBLIC = sorted(name for name, packet in packets.items() if is_public(name, packet))


# An op that `torch.lstm` calls with fifteen arguments, and programs do not.
NOT_SHOWN = ("mkldnn_rnn_layer",)


@pytest.mark.parametrize("name", PUBLIC)
def test_text_and_example(name):
    doc = packets[name].doc
    assert doc, f"{name} has no doc: write it as the kernel's docstring or as doc= of its declaration"
    sentence = doc.strip().partition("\n\n")[0]
    assert sentence.endswith(".") and len(sentence) > 12, sentence
    assert ">>>" in doc, f"{name} has no example"
    assert "callable(" not in doc or name in NOT_SHOWN, f"{name}: the example does not call the op"
    examples = doctest.DocTestParser().get_doctest(doc, {"torch": torch, "F": torch.nn.functional}, name, None, 0)
    report: list[str] = []
    torch.manual_seed(0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append)
    assert not failed, "".join(report)

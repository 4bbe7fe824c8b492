"""The switch between one op per LSTM layer and many."""

from __future__ import annotations

import mindtorch_v2 as torch


def test_the_switch_of_onednn_turns_the_single_op_off():
    layer, x = torch.nn.LSTM(3, 4), torch.ones(2, 1, 3)

    def names():
        with torch.profiler.profile() as prof:
            layer(x)
        return {event.name for event in prof.events()}

    assert "aten::mkldnn_rnn_layer" in names()
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
        assert "aten::mkldnn_rnn_layer" not in names()
    assert torch.backends.mkldnn.enabled

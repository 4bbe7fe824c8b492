"""The ops of network layers: activations, normalization, convolution, pooling, attention, recurrence."""

from . import (
    activation,
    attention,
    batch_norm,
    convolution,
    dropout,
    embedding,
    embedding_bag,
    glu,
    grid_sample,
    layer_norm,
    lstm_layer,
    masked_softmax,
    packed_sequence,
    pad,
    piecewise_activation,
    pooling,
    recurrent,
    resample,
    softmax,
    weight_norm,
)

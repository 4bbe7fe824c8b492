"""torch.utils.weak: tensors as keys that are compared by identity and end when nothing else holds them."""

from __future__ import annotations

import copy
import gc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_keys_are_compared_by_identity_and_end_with_their_tensor():
    a, b = torch.ones(2), torch.ones(2)
    known = WeakIdKeyDictionary({a: 1})
    known[b] = 2
    known[a] = 3
    assert len(known) == 2 and known[a] == 3 and known.get(torch.ones(2)) is None and 5 not in known
    assert [key is a for key in known] == [True, False] and list(known.values()) == [3, 2]
    del b
    gc.collect()
    assert len(known) == 1 and list(known.items()) == [(a, 3)]
    with pytest.raises(KeyError):
        known[torch.ones(2)]


def test_dictionary_outlives_and_is_outlived_by_its_keys():
    a = torch.ones(2)
    known = WeakTensorKeyDictionary({a: 1})
    del known
    gc.collect()
    del a  # its callback finds no dictionary


def test_copies_unions_and_removal():
    a, b = torch.ones(2), torch.ones(2)
    known = WeakIdKeyDictionary({a: [1]})
    assert copy.copy(known) == known and copy.copy(known)[a] is known[a]
    assert copy.deepcopy(known)[a] == [1] and copy.deepcopy(known)[a] is not known[a]
    assert len(known | {b: 2}) == 2 and len({b: 2} | known) == 2 and len(known) == 1
    known |= {b: 2}
    assert known.popitem() == (b, 2) and known.pop(a) == [1] and not known and known.keyrefs() == []


def test_references():
    a = torch.ones(2)
    reference, other = WeakIdRef(a), WeakIdRef(a)
    assert reference == other and hash(reference) == id(a) and reference() is a
    weak = TensorWeakRef(a)
    assert weak() is a
    del a
    gc.collect()
    assert weak() is None and reference != other and reference == reference
    with pytest.raises(AssertionError, match="expected torch.Tensor, got <class 'int'>"):
        TensorWeakRef(3)

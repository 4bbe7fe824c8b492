"""utils._pytree: flattening, maps, paths, structures as text. The answers of CALLS and TREES are PyTorch 2.13's."""

from __future__ import annotations

import copy
import dataclasses
import enum
import pickle
import re
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _pytree as pytree

NT = namedtuple("NT", "a b")

NAMES = {
    **{name: getattr(pytree, name) for name in dir(pytree)},
    **dict(torch=torch, time=time, NT=NT, OrderedDict=OrderedDict, defaultdict=defaultdict, deque=deque),
}


def answer(expression, **names):
    try:
        text = repr(eval(expression, {**NAMES, **names}))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"<class '[\w.]*\bNT'>", "NT", text)


ASKED = [
    "tree_flatten(tree)",
    "(s := tree_structure(tree)).num_leaves, s.num_nodes, s.num_children",
    "[keystr(path) for path, _ in tree_leaves_with_path(tree)]",
    "treespec_dumps(tree_structure(tree))",
    "treespec_pprint(tree_structure(tree))",
    "tree_map_with_path(lambda path, leaf: keystr(path), tree)",
    "_broadcast_to_and_flatten(7, tree_structure(tree))",
    "tree_is_leaf(tree)",
]

# For each tree, the answers to ASKED.
TREES = [
    (
        "1",
        [
            "([1], *)",
            "(1, 1, 0)",
            "['']",
            '\'[1, {"type": null, "context": null, "children_spec": []}]\'',
            "'*'",
            "''",
            "[7]",
            "True",
        ],
    ),
    (
        "(1, [2, {'a': 3, 'b': (4,)}])",
        [
            "([1, 2, 3, 4], TreeSpec(tuple, None, [*,\n"
            "  TreeSpec(list, None, [*,\n"
            "    TreeSpec(dict, ['a', 'b'], [*,\n"
            "      TreeSpec(tuple, None, [*])])])]))",
            "(4, 8, 2)",
            "['[0]', '[1][0]', \"[1][1]['a']\", \"[1][1]['b'][0]\"]",
            '\'[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, '
            '"children_spec": []}, {"type": "builtins.list", "context": "null", "children_spec": [{"type": null, "context": '
            'null, "children_spec": []}, {"type": "builtins.dict", "context": "[\\\\"a\\\\", \\\\"b\\\\"]", "children_spec": '
            '[{"type": null, "context": null, "children_spec": []}, {"type": "builtins.tuple", "context": "null", '
            '"children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]}]}]\'',
            "\"(*, [*, {'a': *, 'b': (*,)}])\"",
            "('[0]', ['[1][0]', {'a': \"[1][1]['a']\", 'b': (\"[1][1]['b'][0]\",)}])",
            "[7, 7, 7, 7]",
            "False",
        ],
    ),
    (
        "NT(1, [2])",
        [
            "([1, 2], TreeSpec(namedtuple, NT, [*,\n  TreeSpec(list, None, [*])]))",
            "(2, 4, 2)",
            "['.a', '.b[0]']",
            "NotImplementedError: Can't serialize TreeSpec of namedtuple class NT because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`.",
            "'NT(a=*, b=[*])'",
            "NT(a='.a', b=['.b[0]'])",
            "[7, 7]",
            "False",
        ],
    ),
    (
        "OrderedDict(b=1, a=2)",
        [
            "([1, 2], TreeSpec(OrderedDict, ['b', 'a'], [*,\n  *]))",
            "(2, 3, 2)",
            "[\"['b']\", \"['a']\"]",
            '\'[1, {"type": "collections.OrderedDict", "context": "[\\\\"b\\\\", \\\\"a\\\\"]", "children_spec": [{"type": '
            'null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]\'',
            "\"OrderedDict([('b', *), ('a', *)])\"",
            "OrderedDict([('b', \"['b']\"), ('a', \"['a']\")])",
            "[7, 7]",
            "False",
        ],
    ),
    (
        "defaultdict(list, x=[1])",
        [
            "([1], TreeSpec(defaultdict, [<class 'list'>, ['x']], [TreeSpec(list, None, [*])]))",
            "(1, 3, 1)",
            "[\"['x'][0]\"]",
            '\'[1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", '
            '"default_factory_name": "list", "dict_context": ["x"]}, "children_spec": [{"type": "builtins.list", "context": '
            '"null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]\'',
            "\"defaultdict(<class 'list'>, {'x': [*]})\"",
            "defaultdict(<class 'list'>, {'x': [\"['x'][0]\"]})",
            "[7]",
            "False",
        ],
    ),
    (
        "deque([1, 2], maxlen=3)",
        [
            "([1, 2], TreeSpec(deque, 3, [*,\n  *]))",
            "(2, 3, 2)",
            "['[0]', '[1]']",
            '\'[1, {"type": "collections.deque", "context": "3", "children_spec": [{"type": null, "context": null, '
            '"children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]\'',
            "'deque([*, *], maxlen=3)'",
            "deque(['[0]', '[1]'], maxlen=3)",
            "[7, 7]",
            "False",
        ],
    ),
    (
        "torch.max(torch.eye(2), 0)",
        [
            "([tensor([1., 1.]), tensor([0, 1])], TreeSpec(max, None, [*,\n  *]))",
            "(2, 3, 2)",
            "['[0]', '[1]']",
            "NotImplementedError: No registered serialization name for <class 'torch.return_types.max'> found. Please update "
            "your _register_pytree_node call with a `serialized_type_name` kwarg.",
            "'torch.return_types.max(\\nvalues=*,\\nindices=*)'",
            "torch.return_types.max(\nvalues='[0]',\nindices='[1]')",
            "[7, 7]",
            "False",
        ],
    ),
    (
        "None",
        [
            "([None], *)",
            "(1, 1, 0)",
            "['']",
            '\'[1, {"type": null, "context": null, "children_spec": []}]\'',
            "'*'",
            "''",
            "[7]",
            "True",
        ],
    ),
    (
        "()",
        [
            "([], TreeSpec(tuple, None, []))",
            "(0, 1, 0)",
            "[]",
            '\'[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]\'',
            "'()'",
            "()",
            "[]",
            "False",
        ],
    ),
    (
        "{2: 'x', 'y': 1}",
        [
            "(['x', 1], TreeSpec(dict, [2, 'y'], [*,\n  *]))",
            "(2, 3, 2)",
            "['[2]', \"['y']\"]",
            '\'[1, {"type": "builtins.dict", "context": "[2, \\\\"y\\\\"]", "children_spec": [{"type": null, "context": null, '
            '"children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]\'',
            "\"{2: *, 'y': *}\"",
            "{2: '[2]', 'y': \"['y']\"}",
            "[7, 7]",
            "False",
        ],
    ),
]

CALLS = [
    (
        "tree_unflatten([1],tree_structure([1,2]))",
        "ValueError: treespec.unflatten(leaves): `leaves` has length 1 but the spec refers to a pytree that holds 2 items "
        "(TreeSpec(list, None, [*,\n"
        "  *])).",
    ),
    (
        "tree_unflatten([1],3)",
        "TypeError: Expected `treespec` to be an instance of PyTreeSpec but got item of type <class 'int'>.",
    ),
    ("tree_map(lambda x,y:(x,y),[1,2],[(3,),(4,)])", "[(1, (3,)), (2, (4,))]"),
    ("tree_map(lambda x,y:(x,y),[1,2],[3])", "ValueError: Node arity mismatch; expected 2, but got 1."),
    (
        "tree_map(lambda x,y:(x,y),[1,2],(3,4))",
        "ValueError: Node type mismatch; expected <class 'list'>, but got <class 'tuple'>.",
    ),
    ("tree_map(lambda x,y:(x,y),{'a':1,'b':2},{'b':3,'a':4})", "{'a': (1, 4), 'b': (2, 3)}"),
    (
        "tree_map(lambda x,y:(x,y),{'a':1,'b':2},{'b':3,'c':4})",
        "ValueError: Node keys mismatch; missing key(s): {'a'}; extra key(s): {'c'}.",
    ),
    ("tree_map(lambda x,y:(x,y),{'a':1},{'a':3,'c':4})", "ValueError: Node arity mismatch; expected 1, but got 2."),
    ("tree_map(lambda x,y:(x,y),{'a':1},5)", "ValueError: Node type mismatch; expected <class 'dict'>, but got <class 'int'>."),
    (
        "tree_map(lambda x,y:(x,y),NT(1,2),(1,2))",
        "ValueError: Node type mismatch; expected <function namedtuple>, but got <class 'tuple'>.",
    ),
    (
        "tree_map(lambda x,y:(x,y),NT(1,2),5)",
        "ValueError: Node type mismatch; expected <function namedtuple>, but got <class 'int'>.",
    ),
    (
        "tree_map(lambda x,y:(x,y),deque([1]),[1])",
        "ValueError: Node type mismatch; expected <class 'collections.deque'>, but got <class 'list'>.",
    ),
    (
        "treespec_dumps('x')",
        "TypeError: Expected `treespec` to be an instance of PyTreeSpec but got item of type <class 'str'>.",
    ),
    ("treespec_loads('[5, 1]')", "ValueError: Unknown protocol 5. Available protocols: [1]"),
    ("treespec_dumps(tree_structure(1), protocol=-1)", "ValueError: Unknown protocol -1. Available protocols: [1]"),
    ("treespec_dumps(tree_structure(1), 9)", "ValueError: Unknown protocol 9. Available protocols: [1]"),
    ("tree_map_only(int, lambda x:x+1, [1,'a'])", "[2, 'a']"),
    ("tree_map_only((int,str), lambda x:x*2, [1,'a',2.])", "[2, 'aa', 2.0]"),
    ("tree_map_only(lambda x:x==1, lambda x:x*2, [1,'a',2.])", "[2, 'a', 2.0]"),
    ("tree_map_only(int|str, lambda x:x*2, [1,'a',2.])", "[2, 'aa', 2.0]"),
    ("tree_map_only(5, lambda x:x*2, [1])", "TypeError: Argument must be a type, a tuple of types, or a callable."),
    ("tree_all_only(int, lambda x:x>0, [1,'a'])", "True"),
    ("tree_any_only(int, lambda x:x>5, [1,'a'])", "False"),
    ("arg_tree_leaves(1,[2],k={'z':3})", "[1, 2, 3]"),
    ("list(tree_iter([1,[2]]))", "[1, 2]"),
    ("treespec_leaf()", "*"),
    ("treespec_tuple([treespec_leaf()])", "TreeSpec(tuple, None, [*])"),
    ("treespec_dict(a=treespec_leaf())", "TreeSpec(dict, ['a'], [*])"),
    ("treespec_tuple([1])", "ValueError: Expected a tuple of TreeSpec values, got: [1]."),
    ("LeafSpec()", "*"),
    ("tree_structure(1) is treespec_leaf()", "True"),
    ("TreeSpec(list,None,[LeafSpec()])", "TreeSpec(list, None, [*])"),
    ("tree_structure([1,2]).flatten_up_to([[1],2])", "[[1], 2]"),
    ("tree_structure([1,2]).flatten_up_to([1])", "ValueError: Node arity mismatch; expected 2, but got 1."),
    ("tree_structure([1,2]).unflatten([3,4])", "[3, 4]"),
    ("tree_structure([1,[2]]).children()", "[*, TreeSpec(list, None, [*])]"),
    ("tree_structure([1,[2]]).child(1)", "TreeSpec(list, None, [*])"),
    ("tree_structure([1,[2]]).is_leaf()", "False"),
    ("is_namedtuple(NT(1,2))", "True"),
    ("is_namedtuple(NT)", "True"),
    ("is_namedtuple_class(NT)", "True"),
    ("is_structseq(time.gmtime())", "True"),
    ("is_structseq_class(time.struct_time)", "True"),
    ("is_namedtuple_instance(NT)", "False"),
    ("is_structseq_instance(torch.max(torch.eye(2),0))", "True"),
    ("is_namedtuple(torch.max(torch.eye(2),0))", "False"),
    ("_dict_flatten({'a':1})", "([1], ['a'])"),
    ("_dict_flatten_with_keys({'a':1})", "([(MappingKey(key='a'), 1)], ['a'])"),
    ("_dict_unflatten([1],['a'])", "{'a': 1}"),
    ("_list_flatten_with_keys([1])", "([(SequenceKey(idx=0), 1)], None)"),
    ("_namedtuple_flatten_with_keys(NT(1,2))", "([(GetAttrKey(name='a'), 1), (GetAttrKey(name='b'), 2)], NT)"),
    ("MappingKey('a')", "MappingKey(key='a')"),
    ("str(MappingKey('a'))", "\"['a']\""),
    ("SequenceKey(1)", "SequenceKey(idx=1)"),
    ("GetAttrKey('x')", "GetAttrKey(name='x')"),
    ("str(GetAttrKey('x'))", "'.x'"),
    ("MappingKey('a').get({'a':5})", "5"),
    ("MappingKey('a')==MappingKey('a')", "True"),
    (
        "tree_flatten([1,[2]], is_leaf=lambda x: isinstance(x,list) and len(x)==1)",
        "([1, [2]], TreeSpec(list, None, [*,\n  *]))",
    ),
    (
        "treespec_dumps(tree_structure(NT(1,2)))",
        "NotImplementedError: Can't serialize TreeSpec of namedtuple class NT because we didn't register a "
        "serializated_type_name. Please register using `_register_namedtuple`.",
    ),
    ("tree_map_with_path(lambda k,x,y:(keystr(k),x,y), {'a':[1]}, {'a':[2]})", "{'a': [(\"['a'][0]\", 1, 2)]}"),
]


@pytest.mark.parametrize(("tree", "answers"), TREES, ids=[tree for tree, _ in TREES])
def test_trees_as_in_torch(tree, answers):
    value = eval(tree, NAMES)
    assert [answer(expression, tree=value) for expression in ASKED] == answers


@pytest.mark.parametrize(("call", "expected"), CALLS, ids=[call for call, _ in CALLS])
def test_calls_as_in_torch(call, expected):
    assert answer(call) == expected


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.fixture
def registered_pair():
    pytree.register_pytree_node(
        Pair,
        lambda pair: ([pair.a, pair.b], "context"),
        lambda values, _: Pair(*values),
        flatten_with_keys_fn=lambda p: ([(pytree.GetAttrKey("a"), p.a), (pytree.GetAttrKey("b"), p.b)], "context"),
        serialized_type_name="test.Pair",
        to_dumpable_context=lambda context: context + "!",
        from_dumpable_context=lambda context: context[:-1],
    )
    yield
    pytree._deregister_pytree_node(Pair)


def test_registered_class(registered_pair):
    tree = [Pair(1, {"k": 2})]
    assert pytree.tree_leaves(tree) == [1, 2]
    paths = [path for path, _ in pytree.tree_leaves_with_path(tree)]
    assert [pytree.keystr(path) for path in paths] == ["[0].a", "[0].b['k']"]
    assert pytree.key_get(tree, paths[1]) == 2
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert '"context": "context!"' in pytree.treespec_dumps(spec)
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)


def test_a_class_that_is_not_registered_any_more_is_a_leaf(registered_pair):
    pytree._deregister_pytree_node(Pair)
    pair = Pair(1, 2)
    assert pytree.tree_leaves(pair) == [pair]
    with pytest.raises(KeyError):
        pytree._deregister_pytree_node(Pair)
    pytree._private_register_pytree_node(Pair, None, None)  # what the fixture takes back


def test_half_a_pair_of_functions_for_contexts_registers_nothing():
    class Half:
        pass

    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(Half, lambda _: ([], None), lambda *_: Half(), to_dumpable_context=str)
    assert Half not in pytree.SUPPORTED_NODES


def test_dataclass():
    @dataclasses.dataclass
    class Point:
        x: int
        y: object = None
        z: int = 5

    with pytest.raises(ValueError, match="Missing fields in `field_names`"):
        pytree.register_dataclass(Point, field_names=["x"])
    with pytest.raises(ValueError, match="Unexpected fields in `field_names`: {'q'}"):
        pytree.register_dataclass(Point, field_names=["x", "y", "z", "q"])
    with pytest.raises(ValueError, match="it is not a dataclass"):
        pytree.register_dataclass(int)
    pytree.register_dataclass(Point, field_names=["x", "y"], drop_field_names=["z"])
    try:
        assert pytree.tree_map(lambda v: v * 2, Point(1, [2], 9)) == Point(2, [4], 5)
        assert pytree.tree_flatten(Point(1))[1].context == [["x"], ["y"]]
        assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Point(1, [2]))] == [".x", ".y[0]"]
    finally:
        pytree._deregister_pytree_node(Point)


def test_constants_are_part_of_the_structure():
    @dataclasses.dataclass(frozen=True)
    class Mode:
        value: int

    class Plain:
        pass

    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(Plain)
    pytree.register_constant(Mode)
    try:
        leaves, spec = pytree.tree_flatten([Mode(1), 2])
        assert leaves == [2] and spec.unflatten([3]) == [Mode(1), 3]
        assert spec != pytree.tree_structure([Mode(2), 2])
        assert pytree.is_constant_class(Mode) and pytree._is_constant_holder(spec.child(0))
        assert pytree._retrieve_constant(spec.child(0)) == Mode(1)
    finally:
        pytree._deregister_pytree_node(Mode)


class Color(enum.Enum):
    RED = 1


def test_structures_as_text():
    named = {Color.RED: 1}
    spec = pytree.tree_structure(list(named))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    pytree._register_namedtuple(NT, serialized_type_name="test.NT")
    spec = pytree.tree_structure([NT(1, (2, {"a": [3]})), defaultdict(list, x=[1]), deque([1], maxlen=2), torch.Size([1])])
    text = pytree.treespec_dumps(spec)
    assert '"context": "test.NT"' in text
    assert pytree.treespec_loads(text) == spec
    del pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[pytree.SUPPORTED_SERIALIZED_TYPES.pop(NT).serialized_type_name]


def test_text_from_elsewhere_imports_nothing():
    text = (
        pytree.treespec_dumps(pytree.tree_structure(defaultdict(list))).replace("builtins", "os").replace('"list"', '"getcwd"')
    )
    with pytest.raises(NotImplementedError, match=r"os\.getcwd|os\.defaultdict|not registered"):
        pytree.treespec_loads(text)
    with pytest.raises(NotImplementedError, match="not registered"):
        pytree.treespec_loads('[1, {"type": "no.Such", "context": "null", "children_spec": []}]')
    with pytest.raises(NotImplementedError, match="no enum"):
        pytree.enum_object_hook({"__enum__": True, "fqn": "antigravity:Fly", "name": "x"})


def test_former_names_say_so():
    with pytest.warns(FutureWarning, match="treespec_dumps"):
        text = pytree.pytree_to_str(pytree.tree_structure([1]))
    with pytest.warns(FutureWarning, match="treespec_loads"):
        assert pytree.str_to_pytree(text) == pytree.tree_structure([1])
    with pytest.warns(FutureWarning, match="is_leaf"):
        assert isinstance(pytree.treespec_leaf(), pytree.LeafSpec)
    with pytest.warns(FutureWarning, match="register_pytree_node"):
        pytree._register_pytree_node(Pair, lambda pair: ([pair.a], None), lambda values, _: Pair(*values, None))
    pytree._deregister_pytree_node(Pair)


def test_structures_copy_pickle_and_hash():
    spec = pytree.tree_structure({"a": [1, (2,)]})
    assert copy.deepcopy(spec) == spec == pickle.loads(pickle.dumps(spec))
    assert hash(spec) == hash(pytree.tree_structure({"a": [5, (6,)]}))
    assert spec != pytree.tree_structure({"b": [1, (2,)]})


def test_maps_for_their_effect():
    seen = []
    tree = [1, "x"]
    assert pytree.tree_map_only_(int, seen.append, tree) is tree
    assert pytree.tree_map_(lambda a, b: seen.append((a, b)), [1], [[2]]) == [1]
    assert seen == [1, (1, [2])]

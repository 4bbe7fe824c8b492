"""The source of generated entries, built from an op's schema.

An entry binds its arguments, reads `observers_active`, runs the op (in a mode, on other devices by `run_kernel`, else its
kernel on arrays), records the node and, while something observes, the row. Names that begin with an underscore are its
locals and the closure's; all others are in `entry_globals`.
"""

from __future__ import annotations

from typing import Any

from .._core.half_precision import MANY
from .._core.keys import AUTOGRAD, PYTHON
from .facts import Batching, Layout, Overlap, Promotion
from .overloads import varargs
from .registry import OpSpec
from .schema import REQUIRED, Argument

_INDENT = "    "
# Promotions that change operands of one dtype, too, unless that is float32.
_ALWAYS = (Promotion.FLOAT, Promotion.REAL)


class _Text:
    """Lines of Python source with the indentation of the block that is open."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *lines: str) -> None:
        self.lines += [_INDENT * self.depth + line for line in lines]

    def begin(self, line: str) -> None:
        self.add(line)
        self.depth += 1

    def end(self) -> None:
        self.depth -= 1


def _literal(value: Any) -> str:
    return "REQUIRED" if value is REQUIRED else repr(value)


def _signature(op: OpSpec, extras: list[str]) -> tuple[str, list[str]]:
    """The parameter list, and the lines that turn it into one variable per schema argument."""
    positional: list[str] = []
    keyword: list[str] = []
    binding: list[str] = []
    spread = varargs(op.schema)
    names = {a.python_name for a in op.schema.arguments}
    needs_default = False  # once a parameter has a default, those after it need one too
    for argument in op.schema.arguments:
        name = argument.python_name
        if argument is spread:
            positional.append("*_values")
            keyword.append(f"{name}=None")
            binding.append(
                f"if {name} is None: {name} = "
                f"_values if _values and (_values[0].__class__ is int or _values[1:]) else spread(_values, _op, {name!r})"
            )
            continue
        aliased = (name == "dim" and "axis" not in names) or (name == "keepdim" and "keepdims" not in names)
        needs_default = needs_default or (argument.default is not REQUIRED and not argument.keyword_only)
        default = ""
        if argument.default is not REQUIRED:
            default = f"={_literal(argument.default)}"
        elif (aliased or needs_default) and not argument.keyword_only:
            default = "=REQUIRED"
            needs_default = True
        (keyword if argument.keyword_only else positional).append(name + default)
        if aliased:
            alias = "axis" if name == "dim" else "keepdims"
            keyword.append(f"{alias}=None")
            binding.append(f"if {alias} is not None: {name} = {alias}")
        if default == "=REQUIRED":
            binding.append(f"if {name} is REQUIRED: missing(_op, {name!r})")
        if argument.is_int_list:
            binding.append(f"if {name}.__class__ is int: {name} = ({f'{name}, ' * argument.int_count})")
    keyword += extras
    star = [] if not keyword or spread is not None else ["*_legacy" if op.deprecated else "*"]
    return ", ".join([*positional, *star, *keyword]), binding


def _keys_expression(arguments: list[Argument]) -> str:
    parts = []
    for a in arguments:
        name = a.python_name
        if a.type_text == "Tensor[]":
            parts.append(f"listed_keys({name})")
        elif a.is_tensor_list:
            parts.append(f"keys_of({name})" if not a.optional else f"keys_of({name} or ())")
        elif a.optional:
            parts.append(f"(0 if {name} is None else {name}._keys)")
        else:
            parts.append(f"{name}._keys")
    return " | ".join(parts) or "0"


def _plain_value(a: Argument) -> str:
    """The expression of an argument as the kernel takes it: arrays for tensors."""
    name = a.python_name
    if a.is_tensor:
        return f"None if {name} is None else {name}._array" if a.optional else f"{name}._array"
    if a.is_tensor_list:
        inner = "None if t is None else t._array" if a.type_text == "Tensor?[]" else "t._array"
        listed = f"[{inner} for t in {name}]"
        return f"None if {name} is None else {listed}" if a.optional else listed
    return name


def entry_source(op: OpSpec) -> str:
    """The source of a function `factory(_op, _id, _kernel, _slow_path)` that makes an op's entry.

    The text names the op through these four alone, so that ops with the same signature and the same way of running share
    one compiled text. `_slow_path` is called when the short path raises; operators have another than functions.
    """
    schema = op.schema
    ident = "_op"
    tensors = [a for a in schema.arguments if a.is_tensor or a.is_tensor_list]
    args = ", ".join(a.python_name for a in schema.arguments)
    packed = f"({args},)" if args else "()"
    factory = not tensors and any(a.name == "dtype" for a in schema.arguments)
    has_out = op.out_keyword
    # `ones_like`, `new_ones`: like factories, but with a tensor as the model.
    modeled = bool(tensors) and op.nondiff and not op.composite and any(a.name == "pin_memory" for a in schema.arguments)
    extras = (["out=None"] if has_out else []) + (["requires_grad=False"] if factory or modeled else [])
    signature, binding = _signature(op, extras)

    text = _Text()
    text.begin("def factory(_op, _id, _kernel, _slow_path):")
    text.begin(f"def entry({signature}):")
    text.add(*binding)
    text.begin("try:")
    text.begin("if observers_active:")
    text.add(
        "_state = current()",
        "if _state is None: _state = threads.state",
        # What is left over of a call in a deprecated order is tested for where modes are, so that it costs other calls nothing.
        "_modes = _legacy or _state.modes" if op.deprecated else "_modes = _state.modes",
        "_append_row = _state.append_row",
    )
    text.begin("if _append_row is None:")
    text.add(
        "_pause = _state.tracer_pause_factory",
        "if _pause is not None: _state.tracer_pause_factory = None; _pause = _pause()",
        "_append_row = _state.append_row_traced",
        "_capture_by_op = _state.capture_by_op",
    )
    text.end()
    # As in torch, ops that take no tensor, or only its shape, have no sequence number of autograd.
    without_sequence = not tensors or schema.name.endswith("_like")
    text.add(
        "else: _capture_by_op = None",
        "_sequence = -1" if without_sequence else "_sequence = _state.sequence if _state.grad_enabled else -1",
        "_start = clock()",
    )
    text.end()
    modes = "_modes = _legacy; _append_row" if op.deprecated else "_modes = _append_row"
    text.add(f"else: {modes} = _capture_by_op = None; _start = 0")
    text.begin("try:")
    if has_out:
        unless = " and not _legacy" if op.deprecated else ""
        text.add(f"if out is not None{unless}: return run_out({ident}, {packed}, out)")
    if factory or modeled:
        text.begin("if _modes:")
        text.add(f"_result = run_modes({ident}, {packed})", "if requires_grad: require_grad(_result)", "return _result")
        text.end()
    elif op.deprecated:
        text.begin("if _modes:")
        text.begin("if _legacy:")
        text.add(
            "_append_row = _capture_by_op = None",
            f"return call_deprecated({ident}, {packed}, _legacy, {'out' if has_out else 'None'})",
        )
        text.end()
        text.add(f"return run_modes({ident}, {packed})")
        text.end()
    else:
        text.add(f"if _modes: return run_modes({ident}, {packed})")
    if op.composite:
        _composite_body(text, op, ident, packed, tensors, args)
    else:
        _kernel_body(text, op, ident, packed, tensors, factory, modeled)
    text.end()
    text.begin("except KERNEL_ERRORS as _error:")
    text.add(f"return _slow_path({ident}, {packed}, _error)")
    text.end()
    text.begin("finally:")
    text.add(
        "if _append_row is not None: _append_row((_id, _start, clock(), _sequence))",
        f"elif _capture_by_op is not None: _end = clock(); _capture_by_op[_id](_start, _end, _sequence, {args})",
    )
    text.end()
    text.end()
    # A traceback keeps this frame and its locals, and would keep the tracer paused.
    text.begin("except:")
    text.add("_pause = None", "raise")
    text.end()
    text.end()
    text.add("return entry")
    return "\n".join(text.lines) + "\n"


def _composite_body(text: _Text, op: OpSpec, ident: str, packed: str, tensors: list[Argument], args: str) -> None:
    text.add(f"_keys = {_keys_expression(tensors)}")
    if op.below_autograd:
        # The op has a derivative of its own, so the ops that it calls record no nodes.
        text.add(f"if _keys > {AUTOGRAD}: return run_kernel({ident}, {packed})", "_thread = threads.state")
        if op.schema.mutates:
            text.add(f"if _keys and _thread.grad_enabled: return run_in_place({ident}, {packed})")
        text.add("_enabled = _thread.grad_enabled", "_thread.grad_enabled = None")
        text.begin("try:")
        text.add(f"_result = _kernel({args})")
        text.end()
        text.add("finally: _thread.grad_enabled = _enabled")
        # With grad mode off only views have something to note: how they were taken.
        recorded = "_keys" if op.schema.is_view else "_keys and _enabled"
        text.add(f"if {recorded}: record_node({ident}, {packed}, _result)", "return _result")
    else:
        text.add(f"if _keys & {PYTHON}: return run_kernel({ident}, {packed})", f"return _kernel({args})")


def _kernel_body(
    text: _Text, op: OpSpec, ident: str, packed: str, tensors: list[Argument], factory: bool, modeled: bool
) -> None:
    schema = op.schema
    general = f"return run_kernel({ident}, {packed})"
    if factory:
        values = _factory_values(text, op, ident, packed)
    else:
        values = _operands(text, op, tensors, packed)
        if schema.mutates:
            text.begin("if _keys:")
            text.add(
                f"if _keys != {AUTOGRAD}: {general}", f"if threads.state.grad_enabled: return run_in_place({ident}, {packed})"
            )
            text.end()
        elif modeled:
            text.begin(f"if _keys > {AUTOGRAD}:")
            text.add(f"_result = run_kernel({ident}, {packed})", "if requires_grad: require_grad(_result)", "return _result")
            text.end()
        else:
            text.add(f"if _keys > {AUTOGRAD}: {general}")
    if op.inner_row is not None:
        text.add("_inner = clock() if _start else 0")
    elif op.recorded_form is not None:
        _recorded_body(text, op, ident, packed, factory or modeled)
    given = ", ".join(values)
    call = f"_kernel({given})"
    if schema.mutates:
        _in_place_result(text, op, ident, values, call)
        return
    few, large = _large_call(op, given)
    if few:
        call = f"({call} if {values[0]}.size < {few} else {large})"
    if not schema.returns or not schema.returns[0].startswith("Tensor"):
        text.add(f"return {call}")
        return
    if len(schema.returns) > 1:
        _several_results(text, op, call, tensors)
    elif schema.returns_list:
        if schema.is_view:
            text.add(f"_result = tuple([make_view(o, {tensors[0].python_name}) for o in {call}])")
        else:
            text.add(f"_result = [make_tensor(o) for o in {call}]")
    else:
        _one_result(text, op, call, tensors)
    if factory or modeled:
        text.add("if requires_grad: require_grad(_result)")
    elif not op.nondiff:
        text.add(f"if _keys: record_node({ident}, {packed}, _result)")
    text.add("return _result")


def _one_result(text: _Text, op: OpSpec, call: str, tensors: list[Argument]) -> None:
    """Emit the lines that wrap the array of a kernel, and tell of its memory."""
    text.add(f"_out = {call}", "if _out.__class__ is not ndarray: _out = asarray(_out)")
    _lay_out(text, op, "_out", tensors)
    if op.shares_memory:
        text.add(f"_result = make_sharing(_out, {tensors[0].python_name})")
    elif op.schema.is_view:
        text.add(f"_result = make_view(_out, {tensors[0].python_name})")
    else:
        _wrap(text, "_out", "_result")
        _arrange(text, op, tensors)
        text.add("_alloc = allocation.extend")
        start = "_start" if op.inner_row is None else "_inner"
        text.begin("if _alloc is not None:")
        text.add(
            f"if _out.base is None: _alloc(({start} or clock(), _out.nbytes, id(_out)))",
            f"else: allocation.on_alloc(_out, {start})",
        )
        text.end()
        if op.inner_row is not None:
            _inner_row(text, op)


def _inner_row(text: _Text, op: OpSpec) -> None:
    """Emit what records the kernel as the op that torch's calls; autograd does not see that one."""
    (first,) = [a.python_name for a in op.schema.arguments]
    text.begin("if _inner:")
    text.add(
        "_shown, _given = _op.inner_row",
        "if _append_row is not None: _append_row((_shown.id, _inner, clock(), -1))",
        f"elif _capture_by_op is not None: _capture_by_op[_shown.id](_inner, clock(), -1, {first}, *_given)",
    )
    text.end()


def _recorded_body(text: _Text, op: OpSpec, ident: str, packed: str, made: bool) -> None:
    """Emit what runs in the kernel's place while the thread records."""
    names = ", ".join(a.python_name for a in op.schema.arguments)
    text.begin("if _start and (_append_row is not None or _capture_by_op is not None):")
    text.add(f"_result = _op.recorded_form({names})")
    if made:
        text.add("if requires_grad: require_grad(_result)")
    elif not op.nondiff and not op.schema.mutates:
        text.add(f"if _keys: record_node({ident}, {packed}, _result)")
    text.add("return _result")
    text.end()


def iterates(op: OpSpec) -> bool:
    """Whether a result lies in memory as torch iterates over the operands: that of an op that works element by element."""
    schema = op.schema
    return (
        op.promote is not None
        and op.layout is None
        and op.batching is not Batching.BY_SAMPLE
        and not schema.mutates
        and not schema.is_view
        and not schema.returns_list
        and schema.returns == ("Tensor",)
    )


# The layouts that follow those of images: the place of the tensor that decides, and the function that lays a result out.
_IMAGES = {Layout.IMAGES: (0, "like_image"), Layout.INPUT_IMAGES: (1, "like_image"), Layout.VOLUMES: (0, "like_volume")}


def _lay_out(text: _Text, op: OpSpec, array: str, tensors: list[Argument]) -> None:
    """Emit what brings a kernel's array into the layout of its op."""
    if op.layout is Layout.ROW_MAJOR and tensors:
        # What is reduced is row-major, too, unless it has a storage: see `_note_layout`.
        viewed = f"{tensors[0].python_name}._storage is not None and " if op.batching is Batching.REDUCTION else ""
        text.add(f"if {viewed}not {array}.flags.c_contiguous: {array} = ascontiguousarray({array})")
    elif op.layout in _IMAGES:
        place, like = _IMAGES[op.layout]
        image = f"{tensors[place].python_name}._array"
        text.add(f"if not ({array}.flags.c_contiguous and {image}.flags.c_contiguous): {array} = {like}({array}, {image})")


def _arrange(text: _Text, op: OpSpec, tensors: list[Argument]) -> None:
    """Emit what lays a result out as its operands, and notes that it is not row-major."""
    if iterates(op):
        operands = [*[f"{name}._array" for name in _plain_names(op)], *[f"_x{i}" for i in range(len(op.promoted))]]
        if op.last_first:
            operands.reverse()
        text.add(f"if _strided: _out = arrange(_result, ({', '.join(operands)},), _strided)")
    elif op.layout is Layout.OPERANDS:
        names = [a.python_name for a in tensors if a.is_tensor and not a.optional]
        shared = " or ".join(f"{name}._storage is not None" for name in names)
        flat = " and ".join(f"{name}._array.flags.c_contiguous" for name in names)
        arrays = ", ".join(f"{name}._array" for name in names)
        text.add(f"if ({shared}) and not ({flat}): _out = arrange(_result, ({arrays},))")
    elif op.layout is Layout.NOTED or op.layout in _IMAGES:
        text.add("if not _out.flags.c_contiguous: storage_of(_result)")


def _plain_names(op: OpSpec) -> list[str]:
    """The tensors that an op iterates over and does not promote: the condition of `where`."""
    return [a.python_name for a in op.schema.arguments if a.is_tensor and a.name not in op.promoted]


def _note_layout(text: _Text, op: OpSpec, tensors: list[str]) -> None:
    """Emit `_strided`: whether operands may lie otherwise than row by row. Only views do, and what was made of such, which
    therefore has a storage, too; so tensors of neither kind cost no more than a look at their slots. For operands that were
    turned it becomes the permutation that turns the result back.
    """
    if iterates(op):
        plain = _plain_names(op)
        shared = " or ".join(f"{name}._storage is not None" for name in (*plain, *tensors))
        arrays = [*[f"{name}._array" for name in plain], *[f"_x{i}" for i in range(len(tensors))]]
        flat = " and ".join(f"{array}.flags.c_contiguous" for array in arrays)
        text.add(f"_strided = ({shared}) and not ({flat})")


def _factory_values(text: _Text, op: OpSpec, ident: str, packed: str) -> list[str]:
    """Emit the lines that leave a factory's short path for devices other than the CPU; return the kernel's arguments."""
    arguments = op.schema.arguments
    if any(a.name == "device" for a in arguments):
        text.begin("if device is not None and device != 'cpu':")
        text.add(f"_result = run_kernel({ident}, {packed})", "if requires_grad: require_grad(_result)", "return _result")
        text.end()
    text.add("_keys = 0")
    return [_plain_value(a) for a in arguments]


def _wrap(text: _Text, array: str, tensor: str) -> None:
    """Emit the lines that make a tensor around fresh memory: what `make_tensor` does, without the call."""
    text.add(
        f"{tensor} = new(Tensor)",
        f"{tensor}._array = {array}",
        f"{tensor}._keys = 0",
        f"{tensor}._storage = None",
        f"{tensor}._base = None",
    )


def _several_results(text: _Text, op: OpSpec, call: str, tensors: list[Argument]) -> None:
    """Emit the lines that wrap the arrays of a kernel with several results, in torch's named tuple where they have names."""
    count = range(len(op.schema.returns))
    arrays, wrapped = [f"_o{i}" for i in count], [f"_t{i}" for i in count]
    text.add(f"{', '.join(arrays)} = {call}")
    for array, tensor in zip(arrays, wrapped, strict=True):
        text.add(f"if {array}.__class__ is not ndarray: {array} = asarray({array})")
        _lay_out(text, op, array, tensors)
        _wrap(text, array, tensor)
        if op.layout in _IMAGES:
            text.add(f"if not {array}.flags.c_contiguous: storage_of({tensor})")
    packed = f"({', '.join(wrapped)})"
    text.add(
        f"_result = new_tuple(_op.results, {packed})" if all(op.schema.return_names) else f"_result = {packed}",
        "_alloc = allocation.on_alloc",
    )
    text.begin("if _alloc is not None:")
    text.add(*[f"_alloc({array}, 0)" for array in arrays])
    text.end()


def _operands(text: _Text, op: OpSpec, tensors: list[Argument], packed: str) -> list[str]:
    """Emit the lines that compute `_keys` and the promoted operands; return the kernel's arguments."""
    promoted = [a for a in op.schema.arguments if a.name in op.promoted]
    if not promoted:
        text.add(f"_keys = {_keys_expression(tensors)}")
        if op.checks_overlap is Overlap.PART and op.schema.mutates and len(tensors) > 1:
            _refuse_overlap(text, op, tensors[0].python_name, tensors[1].python_name)
        elif op.checks_overlap is Overlap.ANY and op.schema.mutates:
            text.add(f"check_apart({', '.join([a.python_name for a in tensors if not a.is_tensor_list])})")
        return [_plain_value(a) for a in op.schema.arguments]
    names = {a.name: f"_x{i}" for i, a in enumerate(promoted)}
    first = promoted[0]
    every = "(" + ", ".join(a.python_name for a in promoted) + ",)"
    into = ", ".join(names.values()) + ","
    remake = f"{into} = promote(_op.promote, {every})"
    plain = [a for a in tensors if a not in promoted]
    if len(promoted) == 1:
        text.add(f"_keys = {_keys_expression(tensors)}", f"_x0 = {first.python_name}._array")
        if op.promote in _ALWAYS:
            text.add(f"if _x0.dtype is not f32 and _keys <= {AUTOGRAD}: {remake}")
        _note_layout(text, op, [first.python_name])
    elif len(promoted) == 2 and not op.tensors_only:
        other = promoted[1].python_name
        text.add(f"_x0 = {first.python_name}._array", f"_kind = {other}.__class__")
        text.begin("if _kind is float or _kind is int:")
        if op.wraps_number:
            text.add(f"if _start: return spelled(_op, {packed})")
        text.add(f"_keys = {_keys_expression([first, *plain])}", f"_x1 = {other}")
        text.begin(f"if _x0.dtype is not f32 and _keys <= {AUTOGRAD}:")
        if op.wide_numbers:
            text.add(f"if _x0.dtype.itemsize == 2: return run_kernel(_op, {packed})")
        text.add(remake)
        text.end()
        _note_layout(text, op, [first.python_name])
        text.end()
        text.begin("else:")
        text.add(f"_keys = {_keys_expression([first, promoted[1], *plain])}", f"_x1 = {other}._array")
        _refuse_overlap(text, op, first.python_name, other)
        mixed = "(_x0.dtype is not f32 or _x1.dtype is not f32)" if op.promote in _ALWAYS else "_x0.dtype is not _x1.dtype"
        text.begin(f"if {mixed} and _keys <= {AUTOGRAD}:")
        if op.wide_numbers:
            text.add(f"if _x0.dtype.itemsize == 2 or _x1.dtype.itemsize == 2: return run_kernel(_op, {packed})")
        text.add(remake)
        text.end()
        _note_layout(text, op, [first.python_name, other])
        if iterates(op) and not op.last_first and not plain:
            text.add("if _strided: _x0, _x1, _strided = turned(_x0, _x1)")
        text.end()
    else:
        text.add(f"_keys = {_keys_expression(tensors)}")
        for a in promoted:
            text.add(f"{names[a.name]} = {a.python_name}._array")
            if a is not first and not a.optional:
                _refuse_overlap(text, op, first.python_name, a.python_name)
        same = " or ".join(f"_x0.dtype is not {name}.dtype" for name in list(names.values())[1:])
        text.add(
            f"if ({same}) and _keys <= {AUTOGRAD}: {remake}"
            if op.promote not in _ALWAYS
            else f"if (_x0.dtype is not f32 or {same}) and _keys <= {AUTOGRAD}: {remake}"
        )
        _note_layout(text, op, [a.python_name for a in promoted])
    return [names.get(a.name) or _plain_value(a) for a in op.schema.arguments]


def _refuse_overlap(text: _Text, op: OpSpec, target: str, source: str) -> None:
    """Emit the check for an op that writes into the memory it reads, which only tensors of one storage can do."""
    if op.schema.mutates:
        text.add(
            f"if {source}._storage is not None and {target}._storage is not None "
            f"and {source}._storage.owner is {target}._storage.owner: "
            f"overlapping_input({target}._array, {source}._array)"
        )


def _large_call(op: OpSpec, given: str) -> tuple[int, str]:
    """From so many elements on, 0 for never, the kernel of an op is called in another way, and this call."""
    if op.half_in_float32:
        return MANY, f"large_elementwise(_kernel, {op.half_in_float32!r}, {op.shared_from}, {given})"
    return op.shared_from, f"elementwise(_kernel, {given})"


def _in_place_result(text: _Text, op: OpSpec, ident: str, values: list[str], call: str) -> None:
    target = op.schema.arguments[0].python_name
    # The next version is computed before anything is written: that of an inference tensor may refuse to grow. It is counted
    # afterwards, in one step, since other threads may have counted meanwhile.
    text.add(f"_shared = {target}._storage", f"if _shared is None: _shared = storage_of({target})", "_shared.version + 1")
    if op.inplace_of is None:
        text.add(call)
    elif op.takes_out:
        text.begin(f"if _x0 is {target}._array:" if op.promoted else "if True:")
        few, large = _large_call(op.inplace_of, f"{', '.join(values)}, out={values[0]}")
        if few:
            text.begin(f"if {values[0]}.size >= {few}:")
            text.add(large)
            text.end()
            text.begin("else:")
        text.add(f"{call[:-1]}, out={values[0]})")
        if few:
            text.end()
        text.end()
        if op.promoted:
            text.add(f"else: write_result({ident}, {target}, {call})")
    else:
        text.add(f"write_result({ident}, {target}, {call})")
    text.add("_shared.version += 1", f"return {target}")

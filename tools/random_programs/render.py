"""A program as Python text."""

from __future__ import annotations

from typing import Any

from .machine import Statement, arranged, numbers

SYMBOLS = dict(
    add="+", sub="-", mul="*", truediv="/", floordiv="//", mod="%", pow="**", matmul="@", and_="&", or_="|", xor="^",
    lshift="<<", rshift=">>", eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=",
)  # fmt: skip
LAYOUTS = {
    "reversed": ".permute({reverse})",
    "rotated": ".permute({rotate})",
    "expanded": ".expand({shape})",
    "expanded last": ".expand({shape})",
    "every second": "[..., ::2]",
    "offset": "[1:]",
}


def name(label: str) -> str:
    return "t" + str(label).replace(".", "_")


def text(argument: Any) -> str:
    if isinstance(argument, list):
        return f"[{', '.join(map(text, argument))}]"
    if isinstance(argument, float) and argument in (float("inf"), float("-inf")):
        return f'float("{argument}")'
    if not isinstance(argument, dict):
        return repr(argument)
    ((kind, content),) = argument.items()
    match kind:
        case "tensor":
            return name(content)
        case "torch":
            return f"torch.{content}"
        case "complex":
            return repr(complex(*content))
        case "slice":
            return f"slice({', '.join(map(repr, content))})"
        case "tuple":
            return f"({', '.join(map(text, content))}{',' if len(content) == 1 else ''})"
    return "..."


def input_text(statement: Statement) -> str:
    shape, dtype = statement["shape"], statement["dtype"]
    layout = statement.get("layout", "plain")
    base, _ = arranged(shape, layout)
    count = 1
    for size in base:
        count *= size
    values = numbers(statement.get("seed", 0), count, dtype, statement.get("style", "plain"))
    made = f"torch.tensor({values}, dtype=torch.{dtype})".replace("nan", "float('nan')").replace("inf", "float('inf')")
    if base != [count]:
        made += f".reshape({base})"
    dims = len(shape)
    if dims and layout in LAYOUTS:
        made += LAYOUTS[layout].format(reverse=list(range(dims))[::-1], rotate=[*range(1, dims), 0], shape=shape)
    return made + (".requires_grad_()" if statement.get("grad") else "")


def joined(statement: Statement, arguments: list[str]) -> str:
    return f" {SYMBOLS[statement['name']]} ".join(arguments)


def statement_text(statement: Statement) -> str:
    label = name(statement["id"])
    do = statement["do"]
    if do == "input":
        return f"{label} = {input_text(statement)}"
    arguments = [text(one) for one in statement["args"]]
    keywords = [f"{key}={text(one)}" for key, one in statement.get("kwargs", {}).items()]
    match do:
        case "call" | "out":
            line = f"{label} = torch.{statement['name']}({', '.join(arguments + keywords)})"
        case "method" | "inplace":
            line = f"{label} = {arguments[0]}.{statement['name']}({', '.join(arguments[1:] + keywords)})"
        case "attribute":
            line = f"{label} = {arguments[0]}.{statement['name']}"
        case "operator" if statement["name"] in SYMBOLS:
            line = f"{label} = {joined(statement, arguments)}"
        case "operator" | "inplace_operator":
            line = f"{label} = operator.{statement['name']}({', '.join(arguments)})"
        case "get":
            line = f"{label} = {arguments[0]}[{arguments[1]}]"
        case "set":
            line = f"{arguments[0]}[{arguments[1]}] = {arguments[2]}"
        case "backward":
            line = f"{arguments[0]}.backward({', '.join([f'weights({arguments[0]})', *keywords])})"
        case "grad":
            line = f"{label} = torch.autograd.grad({', '.join([*arguments, f'weights({arguments[0]})', *keywords])})"
        case _:
            line = f"{arguments[0]}.register_hook(lambda grad: grad * {arguments[1]})"
    return f"with torch.no_grad(): {line}" if statement.get("no_grad") else line


def source(program: list[Statement]) -> str:
    return "\n".join(statement_text(one) for one in program)

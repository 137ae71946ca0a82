"""Expressions in NumPy: arrays with a row for each run, or plain numbers where nothing in them is random."""

from collections.abc import Mapping

import numpy as np

from tests.random_programs import grammar as g

Value = float | np.ndarray
Values = Mapping[str, Value]


def evaluate(expression: g.Expression, variables: Values) -> Value:
    match expression:
        case g.Number(value):
            return value
        case g.Variable(name):
            return variables[name]
        case g.Element(vector, g.Variable(index)):
            table = variables[vector]
            return table[np.arange(len(table)), variables[index].astype(int)]
        case g.Element(vector, index):
            return variables[vector][:, index]
        case g.Total(vector):
            return variables[vector].sum(axis=1)
        case g.Binary(operator, left, right):
            return _OPERATORS[operator](evaluate(left, variables), evaluate(right, variables))
        case g.Apply(function, argument):
            return _FUNCTIONS[function](evaluate(argument, variables))


def truth(condition: g.Condition, variables: Values) -> bool | np.ndarray:
    """Of conditions that Python looks at once."""
    match condition:
        case g.Truth(variable):
            return variables[variable] != 0
        case g.Compare(left, operator, right):
            return _OPERATORS[operator](evaluate(left, variables), right)
        case g.Joined("&" | "|" as operator, left, right):
            return _OPERATORS[operator](truth(left, variables), truth(right, variables))
    raise TypeError(condition)


_OPERATORS = {
    "+": np.add,
    "*": np.multiply,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "&": np.logical_and,
    "|": np.logical_or,
}
_FUNCTIONS = {"tanh": np.tanh, "exp": np.exp, "abs": np.abs, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}

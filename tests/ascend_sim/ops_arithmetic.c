/* Sums, products and the like, element by element. */
#include "pointwise.h"

int pointwise(aclOpExecutor *e, Loops loops, int inputs, aclTensor *const *operands, const aclScalar *a,
              const aclScalar *b) {
    bool wide = false, real = false;
    for (int k = 0; k <= inputs; k++) {
        NEED(operands[k], "tensor %d is missing", k);
        real = real || is_float(operands[k]->dtype);
        wide = wide || operands[k]->dtype == ACL_DOUBLE;
    }
    for (int k = 0; k < inputs; k++)
        NEED(broadcasts_to(operands[k], operands[inputs]), "operand %d does not broadcast to the result", k);
    READY;
    real = real || (a && is_float(a->dtype)) || (b && is_float(b->dtype));
    Numbers numbers = {{a ? a->real : 0, b ? b->real : 0}, {a ? a->integer : 0, b ? b->integer : 0}};
    Walk walk;
    walk_begin(&walk, operands[inputs], inputs + 1, operands);
    (real ? wide ? loops.double_precision : loops.single_precision : loops.integers)(&walk, &numbers);
    return ACL_SUCCESS;
}

EXPRESSION(add, x + a * y)
EXPRESSION(add_number, x + b * a)
EXPRESSION(subtract, x - a * y)
EXPRESSION(subtract_number, x - b * a)
EXPRESSION(multiply, x * y)
EXPRESSION(multiply_number, x * a)
EXPRESSION(divide, (double)x / (double)y)
EXPRESSION(divide_number, (double)x / (double)a)
EXPRESSION(larger, x != x || x > y ? x : y)
EXPRESSION(smaller, x != x || x < y ? x : y)
EXPRESSION(to_the_power, a == 2 ? x * x : pow(x, a))
EXPRESSION(clamp_both, x < a ? a : x > b ? b : x)
EXPRESSION(clamp_below, x < a ? a : x)
EXPRESSION(clamp_above, x > a ? a : x)
EXPRESSION(add_product, x + a * y * z)
EXPRESSION(add_quotient, x + a * ((double)y / (double)z))
EXPRESSION(interpolate, a < 0.5 ? x + a * (y - x) : y - (y - x) * (1 - a))
EXPRESSION(choose, x != 0 ? y : z)
EXPRESSION(both, x != 0 && y != 0)
EXPRESSION(take_number, a)
EXPRESSION(masked_number, y != 0 ? a : x)

#define WITH_ALPHA(NAME, EXPRESSION_NAME)                                                                         \
    OP(NAME, (const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out),             \
       T(self) T(other) S(alpha) T(out)) {                                                                        \
        RUN(EXPRESSION_NAME, 2, scalar_at(e, 2), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 3));        \
    }                                                                                                             \
    OP(Inplace##NAME, (aclTensor * self, const aclTensor *other, const aclScalar *alpha),                         \
       T(self) T(other) S(alpha)) {                                                                               \
        RUN(EXPRESSION_NAME, 2, scalar_at(e, 2), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 0));        \
    }
#define NUMBER_WITH_ALPHA(NAME, EXPRESSION_NAME)                                                                  \
    OP(NAME, (const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out),             \
       T(self) S(other) S(alpha) T(out)) {                                                                        \
        RUN(EXPRESSION_NAME, 1, scalar_at(e, 1), scalar_at(e, 2), tensor_at(e, 0), tensor_at(e, 3));              \
    }                                                                                                             \
    OP(Inplace##NAME, (aclTensor * self, const aclScalar *other, const aclScalar *alpha),                         \
       T(self) S(other) S(alpha)) {                                                                               \
        RUN(EXPRESSION_NAME, 1, scalar_at(e, 1), scalar_at(e, 2), tensor_at(e, 0), tensor_at(e, 0));              \
    }

WITH_ALPHA(Add, add)
NUMBER_WITH_ALPHA(Adds, add_number)
WITH_ALPHA(Sub, subtract)
NUMBER_WITH_ALPHA(Subs, subtract_number)
BINARY(Mul, multiply)
WITH_NUMBER(Muls, multiply_number)
BINARY(Div, divide)
WITH_NUMBER(Divs, divide_number)
BINARY(Maximum, larger)
BINARY(Minimum, smaller)
BINARY(LogicalAnd, both)
WITH_NUMBER(PowTensorScalar, to_the_power)
UNARY(Neg, -x)
UNARY(Abs, x < 0 ? -x : x)
UNARY(Exp, exp(x))
UNARY(Log, log(x))
UNARY(Sqrt, sqrt(x))
UNARY(Rsqrt, 1 / sqrt(x))
UNARY(Reciprocal, 1 / (double)x)
UNARY(LogicalNot, x == 0)
UNARY(IsFinite, x - x == 0)

OP(Clamp, (const aclTensor *self, const aclScalar *min, const aclScalar *max, aclTensor *out),
   T(self) S(min) S(max) T(out)) {
    NEED(given_at(e, 1) || given_at(e, 2), "neither a lower nor an upper bound");
    if (!given_at(e, 2)) RUN(clamp_below, 1, scalar_at(e, 1), NULL, tensor_at(e, 0), tensor_at(e, 3));
    if (!given_at(e, 1)) RUN(clamp_above, 1, scalar_at(e, 2), NULL, tensor_at(e, 0), tensor_at(e, 3));
    RUN(clamp_both, 1, scalar_at(e, 1), scalar_at(e, 2), tensor_at(e, 0), tensor_at(e, 3));
}

#define THREE(NAME, EXPRESSION_NAME)                                                                              \
    OP(NAME, (const aclTensor *self, const aclTensor *one, const aclTensor *two, const aclScalar *value,          \
              aclTensor *out), T(self) T(one) T(two) S(value) T(out)) {                                           \
        RUN(EXPRESSION_NAME, 3, scalar_at(e, 3), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2),         \
            tensor_at(e, 4));                                                                                     \
    }                                                                                                             \
    OP(Inplace##NAME, (const aclTensor *self, const aclTensor *one, const aclTensor *two, const aclScalar *value),\
       T(self) T(one) T(two) S(value)) {                                                                          \
        RUN(EXPRESSION_NAME, 3, scalar_at(e, 3), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2),         \
            tensor_at(e, 0));                                                                                     \
    }

THREE(Addcmul, add_product)
THREE(Addcdiv, add_quotient)
WITH_ALPHA(Lerps, interpolate)

OP(SWhere, (const aclTensor *condition, const aclTensor *self, const aclTensor *other, aclTensor *out),
   T(condition) T(self) T(other) T(out)) {
    RUN(choose, 3, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2), tensor_at(e, 3));
}

OP(InplaceFillScalar, (aclTensor * self, const aclScalar *value), T(self) S(value)) {
    RUN(take_number, 0, scalar_at(e, 1), NULL, tensor_at(e, 0));
}

OP(InplaceMaskedFillScalar, (aclTensor * self, const aclTensor *mask, const aclScalar *value),
   T(self) T(mask) S(value)) {
    RUN(masked_number, 2, scalar_at(e, 2), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 0));
}

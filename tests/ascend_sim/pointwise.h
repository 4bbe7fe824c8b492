/* Operators that compute each element on its own: one expression, made into loops for float32, float64 and integers. */
#ifndef ASCEND_SIM_POINTWISE_H
#define ASCEND_SIM_POINTWISE_H

#include <tgmath.h>
#undef I /* the imaginary unit */

#include "ops.h"

/* The expression may use x, y, z (operands) and a, b (numbers), all of the type R it is computed in. */
typedef struct Numbers {
    double real[2];
    int64_t integer[2];
} Numbers;

typedef void (*Loop)(Walk *walk, const Numbers *numbers);
typedef struct Loops {
    Loop single_precision, double_precision, integers;
} Loops;

int pointwise(aclOpExecutor *e, Loops loops, int inputs, aclTensor *const *operands, const aclScalar *a, const aclScalar *b);

#define AT(k) (walk->p[k] + i * walk->inner[k])
#define LOOP(NAME, SUFFIX, R, A, B, LOAD, STORE, EXPRESSION)                                   \
    static void NAME##_##SUFFIX(Walk *walk, const Numbers *numbers) {                          \
        const R a = (R)numbers->A[0], b = (R)numbers->A[1];                                    \
        const int last = walk->operands - 1;                                                   \
        (void)a, (void)b;                                                                      \
        while (walk_row(walk))                                                                 \
            for (int64_t i = 0; i < walk->length; i++) {                                       \
                const R x = last > 0 ? (R)LOAD(AT(0), walk->dtype[0]) : (R)0;                  \
                const R y = last > 1 ? (R)LOAD(AT(1), walk->dtype[1]) : (R)0;                  \
                const R z = last > 2 ? (R)LOAD(AT(2), walk->dtype[2]) : (R)0;                  \
                (void)x, (void)y, (void)z;                                                     \
                STORE(AT(last), walk->dtype[last], EXPRESSION);                                \
            }                                                                                  \
    }

#define EXPRESSION(NAME, ...)                                                                       \
    LOOP(NAME, f32, float, real, real, load, store, (__VA_ARGS__))                                  \
    LOOP(NAME, f64, double, real, real, load, store, (__VA_ARGS__))                                 \
    LOOP(NAME, i64, int64_t, integer, integer, load_integer, store_integer, (int64_t)(__VA_ARGS__)) \
    static const Loops NAME = {NAME##_f32, NAME##_f64, NAME##_i64};

#define RUN(EXPRESSION_NAME, INPUTS, A, B, ...) \
    return pointwise(e, EXPRESSION_NAME, INPUTS, (aclTensor *const[]){__VA_ARGS__}, A, B)

/* The usual forms: (self, out), (self, other, out), (self, number, out), and those that write into self. */
#define UNARY(NAME, ...)                                                       \
    EXPRESSION(each_##NAME, __VA_ARGS__)                                       \
    OP(NAME, (const aclTensor *self, aclTensor *out), T(self) T(out)) {        \
        RUN(each_##NAME, 1, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1));     \
    }                                                                          \
    OP(Inplace##NAME, (aclTensor * self), T(self)) {                           \
        RUN(each_##NAME, 1, NULL, NULL, tensor_at(e, 0), tensor_at(e, 0));     \
    }
#define BINARY(NAME, EXPRESSION_NAME)                                                                    \
    OP(NAME, (const aclTensor *self, const aclTensor *other, aclTensor *out), T(self) T(other) T(out)) { \
        RUN(EXPRESSION_NAME, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2));          \
    }                                                                                                    \
    OP(Inplace##NAME, (aclTensor * self, const aclTensor *other), T(self) T(other)) {                    \
        RUN(EXPRESSION_NAME, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 0));          \
    }
#define WITH_NUMBER(NAME, EXPRESSION_NAME)                                                               \
    OP(NAME, (const aclTensor *self, const aclScalar *other, aclTensor *out), T(self) S(other) T(out)) { \
        RUN(EXPRESSION_NAME, 1, scalar_at(e, 1), NULL, tensor_at(e, 0), tensor_at(e, 2));                \
    }                                                                                                    \
    OP(Inplace##NAME, (aclTensor * self, const aclScalar *other), T(self) S(other)) {                    \
        RUN(EXPRESSION_NAME, 1, scalar_at(e, 1), NULL, tensor_at(e, 0), tensor_at(e, 0));                \
    }

#endif

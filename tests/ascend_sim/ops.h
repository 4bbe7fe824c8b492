/* libopapi: how an operator is declared, and what kernels share.

   OP(Name, (C parameters), capture) { kernel }  makes aclnnNameGetWorkspaceSize and aclnnName. The kernel is run twice:
   while the first phase is planned it checks its arguments up to READY, later, on the stream's thread, it computes. */
#ifndef ASCEND_SIM_OPS_H
#define ASCEND_SIM_OPS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

aclOpExecutor *op_begin(const char *name, Kernel kernel);
int op_plan(aclOpExecutor *e, uint64_t *workspace_size, aclOpExecutor **executor);
int op_launch(void *workspace, uint64_t workspace_size, aclOpExecutor *e, aclrtStream stream, const char *name);
void take_tensor(aclOpExecutor *e, const aclTensor *tensor);
void take_list(aclOpExecutor *e, const aclTensorList *list);
void take_scalar(aclOpExecutor *e, const aclScalar *scalar);
void take_ints(aclOpExecutor *e, const aclIntArray *array);
void take_bools(aclOpExecutor *e, const aclBoolArray *array);
void take_integer(aclOpExecutor *e, int64_t value);
void take_real(aclOpExecutor *e, double value);
int refuse(aclOpExecutor *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define T(x) take_tensor(e, x);
#define L(x) take_list(e, x);
#define S(x) take_scalar(e, x);
#define I(x) take_ints(e, x);
#define B(x) take_bools(e, x);
#define N(x) take_integer(e, (int64_t)(x));
#define F(x) take_real(e, (double)(x));
#define UNPACK(...) __VA_ARGS__

#define OP(NAME, PARAMETERS, CAPTURE)                                                                                 \
    static int kernel_##NAME(aclOpExecutor *e);                                                                       \
    EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(UNPACK PARAMETERS, uint64_t *workspaceSize,                      \
                                                     aclOpExecutor **executor) {                                      \
        aclOpExecutor *e = op_begin(#NAME, kernel_##NAME);                                                            \
        CAPTURE                                                                                                       \
        return op_plan(e, workspaceSize, executor);                                                                   \
    }                                                                                                                 \
    EXPORT aclnnStatus aclnn##NAME(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream) {     \
        return op_launch(workspace, size, executor, stream, #NAME);                                                   \
    }                                                                                                                 \
    static int kernel_##NAME(aclOpExecutor *e)

#define READY \
    if (e->planning) return ACL_SUCCESS
#define NEED(condition, ...) \
    if (!(condition)) return refuse(e, __VA_ARGS__)

/* Arguments by position. */
static inline aclTensor *tensor_at(aclOpExecutor *e, int i) {
    return e->arguments[i].given ? &e->arguments[i].tensor : NULL;
}
static inline bool given_at(aclOpExecutor *e, int i) { return e->arguments[i].given; }
static inline aclScalar *scalar_at(aclOpExecutor *e, int i) { return &e->arguments[i].scalar; }
static inline aclIntArray *ints_at(aclOpExecutor *e, int i) { return &e->arguments[i].ints; }
static inline int64_t integer_at(aclOpExecutor *e, int i) { return e->arguments[i].integer; }
static inline double real_at(aclOpExecutor *e, int i) { return e->arguments[i].real; }
static inline bool bool_at(aclOpExecutor *e, int i, int j) { return e->arguments[i].ints.values[j] != 0; }

/* ---------------------------------------------------------------- elements and shapes */

static inline bool is_float(aclDataType d) { return d == ACL_FLOAT || d == ACL_DOUBLE || d == ACL_FLOAT16 || d == ACL_BF16; }

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
double load_slowly(const char *p, aclDataType dtype);
void store_slowly(char *p, aclDataType dtype, double value);
int64_t load_integer(const char *p, aclDataType dtype);
void store_integer(char *p, aclDataType dtype, int64_t value);

static inline double load(const char *p, aclDataType dtype) {
    return dtype == ACL_FLOAT ? (double)*(const float *)p : load_slowly(p, dtype);
}
static inline void store(char *p, aclDataType dtype, double value) {
    if (dtype == ACL_FLOAT)
        *(float *)p = (float)value;
    else
        store_slowly(p, dtype, value);
}

int64_t element_count(const aclTensor *t);
bool is_contiguous(const aclTensor *t);
bool same_shape(const aclTensor *a, const aclTensor *b);
bool broadcasts_to(const aclTensor *t, const aclTensor *out);
int64_t normal_dim(int64_t dim, int ndim);
bool all_float32(aclOpExecutor *e);

/* The elements of a tensor as a packed array of float32 in row-major order; `pack` allocates, `unpack` frees. */
float *pack(const aclTensor *t);
void unpack(float *values, const aclTensor *t);

/* The same with the elements as they are. */
char *pack_bytes(const aclTensor *t);
void unpack_bytes(char *bytes, const aclTensor *t);

/* Walks several tensors of one shape at once: rows of the last dimension, `next_row` moves on. */
#define MAX_OPERANDS 6
typedef struct Walk {
    int operands, ndim;
    int64_t dims[MAX_DIMS], at[MAX_DIMS], rows, row, length;
    int64_t steps[MAX_OPERANDS][MAX_DIMS]; /* in bytes; 0 where an operand broadcasts */
    int64_t inner[MAX_OPERANDS];
    char *p[MAX_OPERANDS];
    aclDataType dtype[MAX_OPERANDS];
} Walk;

void walk_begin(Walk *walk, const aclTensor *shape, int operands, aclTensor *const *tensors);
bool walk_row(Walk *walk);

#endif

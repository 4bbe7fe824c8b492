/* Matrix products, accumulated in float32 along rows of the second operand. */
#include "ops.h"

#define BLOCK 64 /* of the inner dimension: rows of the second operand that stay in the cache */

/* out[m, n] += alpha * a[m, k] @ b[k, n], all packed. */
static void accumulate(const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n, float alpha) {
    for (int64_t from = 0; from < k; from += BLOCK)
        for (int64_t i = 0; i < m; i++)
            for (int64_t l = from; l < k && l < from + BLOCK; l++) {
                const float factor = alpha * a[i * k + l];
                const float *row = b + l * n;
                float *to = out + i * n;
                for (int64_t j = 0; j < n; j++) to[j] += factor * row[j];
            }
}

/* A tensor seen as a stack of matrices that repeats where it broadcasts over the leading dimensions of `out`. */
static const float *matrix(const aclTensor *t, const float *packed, const aclTensor *out, int64_t batch) {
    int64_t at = 0, step = 1;
    for (int i = 0; i < out->ndim - 2; i++) {
        int of_out = out->ndim - 3 - i, of_t = t->ndim - 3 - i;
        int64_t index = batch % out->dims[of_out];
        batch /= out->dims[of_out];
        if (of_t < 0) continue;
        if (t->dims[of_t] != 1) at += index * step;
        step *= t->dims[of_t];
    }
    return packed + at * t->dims[t->ndim - 2] * t->dims[t->ndim - 1];
}

static bool leads_fit(const aclTensor *t, const aclTensor *out) {
    for (int i = t->ndim - 3, j = out->ndim - 3; i >= 0; i--, j--)
        if (j < 0 || (t->dims[i] != 1 && t->dims[i] != out->dims[j])) return false;
    return true;
}

/* out = beta * start + alpha * a @ b; a vector counts as a matrix of one row or one column. */
static int product(aclOpExecutor *e, aclTensor *a, aclTensor *b, aclTensor *out, aclTensor *start, float beta, float alpha) {
    NEED(a && b && out, "a tensor is missing");
    NEED(a->ndim && b->ndim, "a number is no matrix");
    aclTensor left = *a, right = *b, result = *out;
    bool row = a->ndim == 1, column = b->ndim == 1;
    if (row) left.ndim = 2, left.dims[1] = a->dims[0], left.strides[1] = a->strides[0], left.dims[0] = 1;
    if (column) right.ndim = 2, right.dims[1] = 1, right.strides[1] = 1;
    if (column) result.dims[result.ndim++] = 1;
    if (row) { /* a dimension of one element before the last */
        result.dims[result.ndim] = result.dims[result.ndim - 1];
        result.dims[result.ndim - 1] = 1;
        result.ndim++;
    }
    int64_t m = left.dims[left.ndim - 2], k = left.dims[left.ndim - 1], n = right.dims[right.ndim - 1];
    NEED(result.ndim >= 2 && right.dims[right.ndim - 2] == k && result.dims[result.ndim - 2] == m &&
             result.dims[result.ndim - 1] == n && leads_fit(&left, &result) && leads_fit(&right, &result),
         "the shapes do not fit");
    NEED(!start || broadcasts_to(start, out), "the first operand does not broadcast to the result");
    e->workspace_size = 1024;
    READY;
    int64_t count = element_count(out);
    float *x = pack(&left), *y = pack(&right), *z = calloc((size_t)count + 1, sizeof(float));
    if (start && beta != 0) {
        Walk walk;
        walk_begin(&walk, out, 1, &start);
        float *to = z;
        while (walk_row(&walk))
            for (int64_t i = 0; i < walk.length; i++)
                *to++ = beta * (float)load(walk.p[0] + i * walk.inner[0], start->dtype);
    }
    int64_t batches = count ? count / (m * n) : 0;
    for (int64_t i = 0; i < batches; i++)
        accumulate(matrix(&left, x, &result, i), matrix(&right, y, &result, i), z + i * m * n, m, k, n, alpha);
    free(x);
    free(y);
    unpack(z, out);
    return ACL_SUCCESS;
}

#define PRODUCT(NAME, DIMS)                                                                              \
    OP(NAME, (const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType),        \
       T(self) T(mat2) T(out) N(cubeMathType)) {                                                         \
        aclTensor *a = tensor_at(e, 0), *b = tensor_at(e, 1);                                            \
        NEED(a && b && (!DIMS || (a->ndim == DIMS && b->ndim == DIMS)), "tensors of %d dimensions", DIMS); \
        return product(e, a, b, tensor_at(e, 2), NULL, 0, 1);                                            \
    }

PRODUCT(Mm, 2)
PRODUCT(BatchMatMul, 3)
PRODUCT(Matmul, 0)

#define SUM_WITH_PRODUCT(NAME)                                                                                      \
    OP(NAME, (const aclTensor *self, const aclTensor *one, const aclTensor *two, const aclScalar *beta,             \
              const aclScalar *alpha, aclTensor *out, int8_t cubeMathType),                                         \
       T(self) T(one) T(two) S(beta) S(alpha) T(out) N(cubeMathType)) {                                             \
        return product(e, tensor_at(e, 1), tensor_at(e, 2), tensor_at(e, 5), tensor_at(e, 0),                       \
                       (float)scalar_at(e, 3)->real, (float)scalar_at(e, 4)->real);                                 \
    }

SUM_WITH_PRODUCT(Addmm)
SUM_WITH_PRODUCT(Baddbmm)

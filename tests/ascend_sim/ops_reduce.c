/* Sums, means and largest elements over dimensions, running sums. */
#include "ops.h"

/* Elements are visited in order; `slot` says to which element of the (packed) result each of them goes. */
typedef struct Reduction {
    bool reduced[MAX_DIMS];
    int64_t steps[MAX_DIMS], results, per_result;
} Reduction;

static int plan_reduction(aclOpExecutor *e, Reduction *plan, const aclTensor *self, const aclIntArray *dims,
                          const aclTensor *out) {
    memset(plan, 0, sizeof *plan);
    for (uint64_t i = 0; i < dims->size; i++) {
        int64_t dim = normal_dim(dims->values[i], self->ndim);
        NEED(dim >= 0 && dim < (self->ndim ? self->ndim : 1), "there is no dimension %lld", (long long)dim);
        plan->reduced[dim] = true;
    }
    plan->results = plan->per_result = 1;
    for (int i = self->ndim - 1; i >= 0; i--) {
        plan->reduced[i] = plan->reduced[i] || !dims->size; /* no dimensions: all of them */
        plan->steps[i] = plan->reduced[i] ? 0 : plan->results;
        if (plan->reduced[i])
            plan->per_result *= self->dims[i];
        else
            plan->results *= self->dims[i];
    }
    NEED(plan->results == element_count(out), "the result has the wrong shape");
    return ACL_SUCCESS;
}

typedef void (*Fold)(double *result, double value);
static void fold_sum(double *result, double value) { *result += value; }
static void fold_largest(double *result, double value) {
    if (value > *result || value != value) *result = value;
}

static int reduce(aclOpExecutor *e, aclTensor *self, const aclIntArray *dims, aclTensor *out, Fold fold, double start,
                  bool mean) {
    Reduction plan;
    NEED(self && out, "a tensor is missing");
    int code = plan_reduction(e, &plan, self, dims, out);
    if (code) return code;
    READY;
    double *results = malloc(sizeof(double) * (size_t)(plan.results + 1));
    for (int64_t i = 0; i < plan.results; i++) results[i] = start;
    Walk walk;
    walk_begin(&walk, self, 1, &self);
    int64_t inner = self->ndim ? plan.steps[self->ndim - 1] : 0;
    while (walk_row(&walk)) {
        int64_t slot = 0;
        for (int i = 0; i < walk.ndim; i++) slot += walk.at[i] * plan.steps[i];
        for (int64_t i = 0; i < walk.length; i++)
            fold(&results[slot + i * inner], load(walk.p[0] + i * walk.inner[0], self->dtype));
    }
    int64_t next = 0;
    Walk to;
    walk_begin(&to, out, 1, &out);
    while (walk_row(&to))
        for (int64_t i = 0; i < to.length; i++, next++)
            store(to.p[0] + i * to.inner[0], out->dtype, mean ? results[next] / (double)plan.per_result : results[next]);
    free(results);
    return ACL_SUCCESS;
}

OP(ReduceSum, (const aclTensor *self, const aclIntArray *dims, bool keep, aclDataType dtype, aclTensor *out),
   T(self) I(dims) N(keep) N(dtype) T(out)) {
    return reduce(e, tensor_at(e, 0), ints_at(e, 1), tensor_at(e, 4), fold_sum, 0, false);
}

OP(Mean, (const aclTensor *self, const aclIntArray *dims, bool keep, aclDataType dtype, aclTensor *out),
   T(self) I(dims) N(keep) N(dtype) T(out)) {
    return reduce(e, tensor_at(e, 0), ints_at(e, 1), tensor_at(e, 4), fold_sum, 0, true);
}

OP(Amax, (const aclTensor *self, const aclIntArray *dims, bool keep, aclTensor *out), T(self) I(dims) N(keep) T(out)) {
    return reduce(e, tensor_at(e, 0), ints_at(e, 1), tensor_at(e, 3), fold_largest, -INFINITY, false);
}

OP(Max, (const aclTensor *self, aclTensor *out), T(self) T(out)) {
    aclIntArray all = {0};
    return reduce(e, tensor_at(e, 0), &all, tensor_at(e, 1), fold_largest, -INFINITY, false);
}

/* ---------------------------------------------------------------- lines along one dimension */

/* A tensor's view at the first place of a dimension, which is left out unless it never was there. */
static aclTensor without_dim(const aclTensor *t, int64_t dim, bool present) {
    aclTensor rest = *t;
    if (!t->ndim || !present) return rest;
    for (int i = (int)dim; i + 1 < t->ndim; i++) {
        rest.dims[i] = t->dims[i + 1];
        rest.strides[i] = t->strides[i + 1];
    }
    rest.ndim--;
    return rest;
}

/* The largest element of each line, the first of equals, and where it is. */
static int largest_of_lines(aclOpExecutor *e, aclTensor *self, int64_t dim, bool keep, aclTensor *values, aclTensor *places) {
    NEED(self && places, "a tensor is missing");
    dim = normal_dim(dim, self->ndim);
    NEED(dim >= 0 && dim < (self->ndim ? self->ndim : 1), "there is no dimension %lld", (long long)dim);
    aclTensor rest = without_dim(self, dim, true);
    aclTensor to = without_dim(places, dim, keep), value = values ? without_dim(values, dim, keep) : to;
    NEED(same_shape(&rest, &to) && same_shape(&rest, &value), "the result has the wrong shape");
    READY;
    int64_t n = self->ndim ? self->dims[dim] : 1;
    int64_t step = self->ndim ? self->strides[dim] * (int64_t)sim_item_size(self->dtype) : 0;
    Walk walk;
    walk_begin(&walk, &rest, 3, (aclTensor *const[]){&rest, &value, &to});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) {
            const char *line = walk.p[0] + i * walk.inner[0];
            int64_t best = 0;
            for (int64_t j = 1; j < n; j++)
                if (load(line + j * step, self->dtype) > load(line + best * step, self->dtype)) best = j;
            if (values) store(walk.p[1] + i * walk.inner[1], value.dtype, load(line + best * step, self->dtype));
            store_integer(walk.p[2] + i * walk.inner[2], to.dtype, best);
        }
    return ACL_SUCCESS;
}

OP(ArgMax, (const aclTensor *self, int64_t dim, bool keep, aclTensor *out), T(self) N(dim) N(keep) T(out)) {
    return largest_of_lines(e, tensor_at(e, 0), integer_at(e, 1), integer_at(e, 2), NULL, tensor_at(e, 3));
}

OP(MaxDim, (const aclTensor *self, int64_t dim, bool keep, aclTensor *out, aclTensor *indices),
   T(self) N(dim) N(keep) T(out) T(indices)) {
    return largest_of_lines(e, tensor_at(e, 0), integer_at(e, 1), integer_at(e, 2), tensor_at(e, 3), tensor_at(e, 4));
}

OP(Cumsum, (const aclTensor *self, int64_t dim, aclDataType dtype, aclTensor *out), T(self) N(dim) N(dtype) T(out)) {
    aclTensor *self = tensor_at(e, 0), *out = tensor_at(e, 3);
    NEED(self && out && same_shape(self, out), "the shapes do not fit");
    int64_t dim = normal_dim(integer_at(e, 1), self->ndim);
    NEED(dim >= 0 && dim < (self->ndim ? self->ndim : 1), "there is no dimension %lld", (long long)dim);
    READY;
    aclTensor from = without_dim(self, dim, true), to = without_dim(out, dim, true);
    int64_t n = self->ndim ? self->dims[dim] : 1;
    int64_t step = self->ndim ? self->strides[dim] * (int64_t)sim_item_size(self->dtype) : 0;
    int64_t out_step = out->ndim ? out->strides[dim] * (int64_t)sim_item_size(out->dtype) : 0;
    Walk walk;
    walk_begin(&walk, &from, 2, (aclTensor *const[]){&from, &to});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++) {
                sum += load(walk.p[0] + i * walk.inner[0] + j * step, self->dtype);
                store(walk.p[1] + i * walk.inner[1] + j * out_step, out->dtype, sum);
            }
        }
    return ACL_SUCCESS;
}

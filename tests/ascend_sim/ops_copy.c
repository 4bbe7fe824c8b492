/* Moving elements: copies between layouts and data types, joining tensors, triangles, ranges. */
#include "ops.h"

static void copy_elements(const aclTensor *from, const aclTensor *to) {
    Walk walk;
    walk_begin(&walk, to, 2, (aclTensor *const[]){(aclTensor *)from, (aclTensor *)to});
    size_t item = sim_item_size(to->dtype);
    bool same = from->dtype == to->dtype, real = is_float(from->dtype) || is_float(to->dtype);
    while (walk_row(&walk)) {
        if (same && walk.inner[0] == (int64_t)item && walk.inner[1] == (int64_t)item) {
            memmove(walk.p[1], walk.p[0], item * (size_t)walk.length);
            continue;
        }
        for (int64_t i = 0; i < walk.length; i++) {
            const char *source = walk.p[0] + i * walk.inner[0];
            char *target = walk.p[1] + i * walk.inner[1];
            if (same)
                memcpy(target, source, item);
            else if (real)
                store(target, to->dtype, load(source, from->dtype));
            else
                store_integer(target, to->dtype, load_integer(source, from->dtype));
        }
    }
}

OP(InplaceCopy, (aclTensor * self, const aclTensor *source), T(self) T(source)) {
    aclTensor *to = tensor_at(e, 0), *from = tensor_at(e, 1);
    NEED(to && from && broadcasts_to(from, to), "the source does not broadcast to the target");
    READY;
    copy_elements(from, to);
    return ACL_SUCCESS;
}

OP(Cast, (const aclTensor *self, aclDataType dtype, aclTensor *out), T(self) N(dtype) T(out)) {
    aclTensor *from = tensor_at(e, 0), *to = tensor_at(e, 2);
    NEED(to && from && same_shape(from, to) && integer_at(e, 1) == (int64_t)to->dtype, "the result does not fit");
    READY;
    copy_elements(from, to);
    return ACL_SUCCESS;
}

OP(InplaceZero, (aclTensor * self), T(self)) {
    aclTensor *to = tensor_at(e, 0);
    NEED(to, "no tensor");
    READY;
    Walk walk;
    walk_begin(&walk, to, 1, &to);
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) memset(walk.p[0] + i * walk.inner[0], 0, sim_item_size(to->dtype));
    return ACL_SUCCESS;
}

/* Each tensor of a list goes to its part of the result along a dimension. */
static int join(aclOpExecutor *e, bool stack) {
    Argument *list = &e->arguments[0];
    aclTensor *out = tensor_at(e, 2);
    NEED(list->given && list->count && out, "nothing to join");
    int64_t dim = normal_dim(integer_at(e, 1), out->ndim), filled = 0;
    NEED(dim >= 0 && dim < out->ndim, "there is no dimension %lld", (long long)dim);
    for (int k = 0; k < list->count; k++) filled += stack ? 1 : list->list[k].dims[dim];
    NEED(filled == out->dims[dim], "the parts do not add up to the result");
    READY;
    aclTensor part = *out;
    for (int k = 0; k < list->count; k++) {
        aclTensor from = list->list[k];
        if (stack) { /* the new dimension is taken out of the result instead of put into the parts */
            part = *out;
            part.ndim = out->ndim - 1;
            for (int i = (int)dim; i < part.ndim; i++) {
                part.dims[i] = out->dims[i + 1];
                part.strides[i] = out->strides[i + 1];
            }
            part.data = out->data + k * out->strides[dim] * (int64_t)sim_item_size(out->dtype);
        } else {
            part.dims[dim] = from.dims[dim];
        }
        copy_elements(&from, &part);
        if (!stack) part.data += from.dims[dim] * out->strides[dim] * (int64_t)sim_item_size(out->dtype);
    }
    return ACL_SUCCESS;
}

OP(Cat, (const aclTensorList *tensors, int64_t dim, aclTensor *out), L(tensors) N(dim) T(out)) { return join(e, false); }

OP(Stack, (const aclTensorList *tensors, int64_t dim, aclTensor *out), L(tensors) N(dim) T(out)) { return join(e, true); }

static int triangle(aclOpExecutor *e, bool lower) {
    aclTensor *from = tensor_at(e, 0), *to = tensor_at(e, 2);
    NEED(from && to && same_shape(from, to) && from->ndim >= 2 && from->dtype == to->dtype, "the shapes do not fit");
    READY;
    int64_t diagonal = integer_at(e, 1), rows = from->dims[from->ndim - 2];
    size_t item = sim_item_size(from->dtype);
    Walk walk;
    walk_begin(&walk, to, 2, (aclTensor *const[]){from, to});
    for (int64_t row = 0; walk_row(&walk); row = (row + 1) % rows)
        for (int64_t j = 0; j < walk.length; j++) {
            char *target = walk.p[1] + j * walk.inner[1];
            if (lower ? j <= row + diagonal : j >= row + diagonal)
                memcpy(target, walk.p[0] + j * walk.inner[0], item);
            else
                memset(target, 0, item);
        }
    return ACL_SUCCESS;
}

OP(Tril, (const aclTensor *self, int64_t diagonal, aclTensor *out), T(self) N(diagonal) T(out)) { return triangle(e, true); }

OP(Triu, (const aclTensor *self, int64_t diagonal, aclTensor *out), T(self) N(diagonal) T(out)) { return triangle(e, false); }

OP(Arange, (const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out),
   S(start) S(end) S(step) T(out)) {
    aclTensor *out = tensor_at(e, 3);
    NEED(out && out->ndim == 1, "the result must have one dimension");
    READY;
    int64_t item = (int64_t)sim_item_size(out->dtype);
    for (int64_t i = 0; i < out->dims[0]; i++) {
        char *to = out->data + i * out->strides[0] * item;
        if (is_float(out->dtype))
            store(to, out->dtype, scalar_at(e, 0)->real + (double)i * scalar_at(e, 2)->real);
        else
            store_integer(to, out->dtype, scalar_at(e, 0)->integer + i * scalar_at(e, 2)->integer);
    }
    return ACL_SUCCESS;
}

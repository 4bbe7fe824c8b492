/* Elements by index: embedding, selecting, gathering, scattering. */
#include "ops.h"

/* An index that is out of range stops the kernel, as an address exception of the AI core does. */
static int out_of_range(const aclOpExecutor *e, int64_t index, int64_t size) {
    return sim_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s: index %lld of %lld", e->name, (long long)index, (long long)size);
}

static int64_t *pack_indices(const aclTensor *t) {
    int64_t *values = malloc(sizeof(int64_t) * (size_t)(element_count(t) + 1)), *to = values;
    Walk walk;
    walk_begin(&walk, t, 1, (aclTensor *const[]){(aclTensor *)t});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) *to++ = load_integer(walk.p[0] + i * walk.inner[0], t->dtype);
    return values;
}

/* out[..., index..., ...] = self[..., index, ...]: the dimension `dim` becomes those of `index`. */
static int select_rows(aclOpExecutor *e, aclTensor *self, int64_t dim, aclTensor *index, aclTensor *out) {
    NEED(self && index && out && self->ndim, "a tensor is missing");
    dim = normal_dim(dim, self->ndim);
    NEED(dim >= 0 && dim < self->ndim, "there is no dimension %lld", (long long)dim);
    int64_t chosen = element_count(index), rest = element_count(self) / (self->dims[dim] ? self->dims[dim] : 1);
    NEED(self->dtype == out->dtype && element_count(out) == rest * chosen, "the result has the wrong shape");
    READY;
    int64_t item = (int64_t)sim_item_size(self->dtype), inner = 1, outer = 1, n = self->dims[dim];
    for (int i = 0; i < self->ndim; i++) {
        if (i < dim) outer *= self->dims[i];
        if (i > dim) inner *= self->dims[i];
    }
    char *from = pack_bytes(self), *to = malloc((size_t)(element_count(out) * item + 1));
    int64_t *indices = pack_indices(index);
    int code = ACL_SUCCESS;
    for (int64_t i = 0; i < outer && !code; i++)
        for (int64_t j = 0; j < chosen && !code; j++) {
            int64_t at = indices[j] < 0 ? indices[j] + n : indices[j];
            if (at < 0 || at >= n)
                code = out_of_range(e, at, n);
            else
                memcpy(to + (i * chosen + j) * inner * item, from + (i * n + at) * inner * item, (size_t)(inner * item));
        }
    free(indices);
    free(from);
    if (code) free(to);
    else unpack_bytes(to, out);
    return code;
}

OP(Embedding, (const aclTensor *weight, const aclTensor *indices, const aclTensor *out), T(weight) T(indices) T(out)) {
    return select_rows(e, tensor_at(e, 0), 0, tensor_at(e, 1), tensor_at(e, 2));
}

OP(GatherV2, (const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out), T(self) N(dim) T(index) T(out)) {
    return select_rows(e, tensor_at(e, 0), integer_at(e, 1), tensor_at(e, 2), tensor_at(e, 3));
}

OP(IndexSelect, (const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out), T(self) N(dim) T(index) T(out)) {
    return select_rows(e, tensor_at(e, 0), integer_at(e, 1), tensor_at(e, 2), tensor_at(e, 3));
}

OP(EmbeddingDenseBackward, (const aclTensor *grad, const aclTensor *indices, uint64_t numWeights, uint64_t paddingIdx,
                            bool scaleGradByFreq, const aclTensor *out),
   T(grad) T(indices) N(numWeights) N(paddingIdx) N(scaleGradByFreq) T(out)) {
    aclTensor *grad = tensor_at(e, 0), *indices = tensor_at(e, 1), *out = tensor_at(e, 5);
    NEED(grad && indices && out && out->ndim == 2 && out->dims[0] == integer_at(e, 2), "the result has the wrong shape");
    READY;
    int64_t count = element_count(indices), rows = out->dims[0], width = out->dims[1], padding = integer_at(e, 3);
    int64_t *at = pack_indices(indices);
    float *g = pack(grad), *result = calloc((size_t)(rows * width + 1), sizeof(float));
    int64_t *seen = calloc((size_t)rows + 1, sizeof(int64_t));
    int code = ACL_SUCCESS;
    for (int64_t i = 0; i < count && !code; i++) {
        if (at[i] < 0 || at[i] >= rows) code = out_of_range(e, at[i], rows);
        else seen[at[i]]++;
    }
    for (int64_t i = 0; i < count && !code; i++) {
        if (at[i] == padding) continue;
        float scale = integer_at(e, 4) ? 1.0f / (float)seen[at[i]] : 1.0f;
        for (int64_t j = 0; j < width; j++) result[at[i] * width + j] += scale * g[i * width + j];
    }
    free(at);
    free(g);
    free(seen);
    if (code) free(result);
    else unpack(result, out);
    return code;
}

/* ---------------------------------------------------------------- one index for each element */

typedef void (*Each)(char *one, char *many, aclDataType dtype);
static void take_one(char *one, char *many, aclDataType dtype) { memcpy(one, many, sim_item_size(dtype)); }
static void add_one(char *one, char *many, aclDataType dtype) {
    if (is_float(dtype))
        store(many, dtype, load(many, dtype) + load(one, dtype));
    else
        store_integer(many, dtype, load_integer(many, dtype) + load_integer(one, dtype));
}

/* For each place of `index`: `one` at that place meets `many` at the same place with its index along `dim`. */
static int by_index(aclOpExecutor *e, aclTensor *many, int64_t dim, aclTensor *index, aclTensor *one, Each each) {
    int64_t item = (int64_t)sim_item_size(many->dtype);
    aclTensor base = *many, part = *one;
    base.ndim = part.ndim = index->ndim;
    for (int i = 0; i < index->ndim; i++) base.dims[i] = part.dims[i] = index->dims[i];
    if (index->ndim) base.strides[dim] = 0; /* its index says how far along */
    int64_t n = many->ndim ? many->dims[dim] : 1, step = many->ndim ? many->strides[dim] * item : 0;
    Walk walk;
    walk_begin(&walk, index, 3, (aclTensor *const[]){index, &part, &base});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) {
            int64_t at = load_integer(walk.p[0] + i * walk.inner[0], index->dtype);
            if (at < 0 || at >= n) return out_of_range(e, at, n);
            each(walk.p[1] + i * walk.inner[1], walk.p[2] + i * walk.inner[2] + at * step, many->dtype);
        }
    return ACL_SUCCESS;
}

OP(Gather, (const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out), T(self) N(dim) T(index) T(out)) {
    aclTensor *self = tensor_at(e, 0), *index = tensor_at(e, 2), *out = tensor_at(e, 3);
    NEED(self && index && out && same_shape(index, out) && self->ndim == index->ndim && self->dtype == out->dtype,
         "the shapes do not fit");
    int64_t dim = normal_dim(integer_at(e, 1), self->ndim);
    NEED(dim >= 0 && dim < (self->ndim ? self->ndim : 1), "there is no dimension %lld", (long long)dim);
    READY;
    return by_index(e, self, dim, index, out, take_one);
}

OP(ScatterAdd, (const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src, aclTensor *out),
   T(self) N(dim) T(index) T(src) T(out)) {
    aclTensor *self = tensor_at(e, 0), *index = tensor_at(e, 2), *source = tensor_at(e, 3), *out = tensor_at(e, 4);
    NEED(self && index && source && out && same_shape(self, out) && self->ndim == index->ndim &&
             self->dtype == out->dtype && source->dtype == out->dtype, "the shapes do not fit");
    int64_t dim = normal_dim(integer_at(e, 1), self->ndim);
    NEED(dim >= 0 && dim < (self->ndim ? self->ndim : 1), "there is no dimension %lld", (long long)dim);
    READY;
    unpack_bytes(pack_bytes(self), out);
    return by_index(e, out, dim, index, source, add_one);
}

/* Largest and mean elements of windows over the last two dimensions, and their derivatives. */
#include "ops.h"

typedef struct Pool {
    int64_t planes, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
} Pool;

static int64_t pool_size_at(const aclIntArray *a, int i, int64_t otherwise) {
    return !a->size ? otherwise : a->size == 1 ? a->values[0] : a->values[i];
}

static bool planes_of(Pool *p, const aclTensor *input, const aclTensor *output) {
    int n = input->ndim;
    if ((n != 3 && n != 4) || output->ndim != n) return false;
    p->planes = n == 3 ? input->dims[0] : input->dims[0] * input->dims[1];
    p->h = input->dims[n - 2], p->w = input->dims[n - 1];
    p->oh = output->dims[n - 2], p->ow = output->dims[n - 1];
    return p->planes == (n == 3 ? output->dims[0] : output->dims[0] * output->dims[1]);
}

static bool windows(Pool *p, const aclTensor *input, const aclTensor *output, const aclIntArray *kernel,
                    const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation) {
    if (!planes_of(p, input, output)) return false;
    p->kh = pool_size_at(kernel, 0, 1), p->kw = pool_size_at(kernel, 1, 1);
    p->sh = pool_size_at(stride, 0, p->kh), p->sw = pool_size_at(stride, 1, p->kw);
    p->ph = pool_size_at(padding, 0, 0), p->pw = pool_size_at(padding, 1, 0);
    p->dh = dilation ? pool_size_at(dilation, 0, 1) : 1, p->dw = dilation ? pool_size_at(dilation, 1, 1) : 1;
    return p->oh >= 1 && p->ow >= 1;
}

OP(MaxPool2dWithIndices, (const aclTensor *self, const aclIntArray *kernel, const aclIntArray *stride,
                          const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
                          aclTensor *indices),
   T(self) I(kernel) I(stride) I(padding) I(dilation) N(ceilMode) T(out) T(indices)) {
    aclTensor *self = tensor_at(e, 0), *out = tensor_at(e, 6), *indices = tensor_at(e, 7);
    Pool p;
    NEED(self && out && indices && same_shape(out, indices) && indices->dtype == ACL_INT32, "indices must be int32");
    NEED(windows(&p, self, out, ints_at(e, 1), ints_at(e, 2), ints_at(e, 3), ints_at(e, 4)), "the shapes do not fit");
    READY;
    float *x = pack(self), *y = malloc(sizeof(float) * (size_t)(element_count(out) + 1));
    int32_t *places = malloc(sizeof(int32_t) * (size_t)(element_count(out) + 1));
    int64_t next = 0;
    for (int64_t plane = 0; plane < p.planes; plane++)
        for (int64_t i = 0; i < p.oh; i++)
            for (int64_t j = 0; j < p.ow; j++, next++) {
                float best = -INFINITY;
                int64_t place = -1;
                for (int64_t k = 0; k < p.kh; k++)
                    for (int64_t l = 0; l < p.kw; l++) {
                        int64_t row = i * p.sh - p.ph + k * p.dh, column = j * p.sw - p.pw + l * p.dw;
                        if (row < 0 || row >= p.h || column < 0 || column >= p.w) continue;
                        float value = x[(plane * p.h + row) * p.w + column];
                        if (place < 0 || value > best || value != value) best = value, place = row * p.w + column;
                    }
                y[next] = best;
                places[next] = (int32_t)place;
            }
    free(x);
    unpack(y, out);
    unpack_bytes((char *)places, indices);
    return ACL_SUCCESS;
}

OP(MaxPool2dWithIndicesBackward, (const aclTensor *grad, const aclTensor *self, const aclTensor *indices,
                                  const aclIntArray *kernel, const aclIntArray *stride, const aclIntArray *padding,
                                  const aclIntArray *dilation, bool ceilMode, aclTensor *out),
   T(grad) T(self) T(indices) I(kernel) I(stride) I(padding) I(dilation) N(ceilMode) T(out)) {
    aclTensor *grad = tensor_at(e, 0), *self = tensor_at(e, 1), *indices = tensor_at(e, 2), *out = tensor_at(e, 8);
    Pool p;
    NEED(grad && self && indices && out && same_shape(grad, indices) && same_shape(self, out) &&
             indices->dtype == ACL_INT32, "the shapes do not fit");
    NEED(planes_of(&p, self, grad), "the shapes do not fit");
    READY;
    float *g = pack(grad), *dx = calloc((size_t)element_count(out) + 1, sizeof(float));
    int32_t *places = (int32_t *)pack_bytes(indices);
    for (int64_t plane = 0, i = 0; plane < p.planes; plane++)
        for (int64_t k = 0; k < p.oh * p.ow; k++, i++) dx[plane * p.h * p.w + places[i]] += g[i];
    free(g);
    free(places);
    unpack(dx, out);
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- means */

/* A window: rows [top, bottom), columns [left, right) of the input, and what its sum is divided by. */
typedef struct Window {
    int64_t top, bottom, left, right;
    double divisor;
} Window;

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static Window mean_window(const Pool *p, int64_t i, int64_t j, bool count_padding, int64_t divisor) {
    int64_t top = i * p->sh - p->ph, left = j * p->sw - p->pw;
    int64_t bottom = at_most(top + p->kh, p->h + p->ph), right = at_most(left + p->kw, p->w + p->pw);
    int64_t padded = (bottom - top) * (right - left);
    Window w = {at_least(top, 0), at_most(bottom, p->h), at_least(left, 0), at_most(right, p->w), 1};
    w.divisor = (double)(divisor ? divisor : count_padding ? padded : (w.bottom - w.top) * (w.right - w.left));
    return w;
}

static Window adaptive_window(const Pool *p, int64_t i, int64_t j) {
    Window w = {i * p->h / p->oh, ((i + 1) * p->h + p->oh - 1) / p->oh, j * p->w / p->ow,
                ((j + 1) * p->w + p->ow - 1) / p->ow, 1};
    w.divisor = (double)((w.bottom - w.top) * (w.right - w.left));
    return w;
}

/* Means of windows (`back` false), or their gradient spread over the windows. */
static void means(const Pool *p, const float *from, float *to, bool adaptive, bool count_padding, int64_t divisor, bool back) {
    for (int64_t plane = 0; plane < p->planes; plane++)
        for (int64_t i = 0; i < p->oh; i++)
            for (int64_t j = 0; j < p->ow; j++) {
                Window w = adaptive ? adaptive_window(p, i, j) : mean_window(p, i, j, count_padding, divisor);
                int64_t small = (plane * p->oh + i) * p->ow + j;
                double sum = 0;
                for (int64_t row = w.top; row < w.bottom; row++)
                    for (int64_t column = w.left; column < w.right; column++) {
                        int64_t large = (plane * p->h + row) * p->w + column;
                        if (back) to[large] += (float)(from[small] / w.divisor);
                        else sum += from[large];
                    }
                if (!back) to[small] = (float)(sum / w.divisor);
            }
}

static int run_means(const Pool *p, const aclTensor *from, const aclTensor *to, bool adaptive, bool count_padding,
                     int64_t divisor, bool back) {
    float *x = pack(from), *y = calloc((size_t)element_count(to) + 1, sizeof(float));
    means(p, x, y, adaptive, count_padding, divisor, back);
    free(x);
    unpack(y, to);
    return ACL_SUCCESS;
}

OP(AvgPool2d, (const aclTensor *self, const aclIntArray *kernel, const aclIntArray *stride, const aclIntArray *padding,
               bool ceilMode, bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType, aclTensor *out),
   T(self) I(kernel) I(stride) I(padding) N(ceilMode) N(countIncludePad) N(divisorOverride) N(cubeMathType) T(out)) {
    aclTensor *self = tensor_at(e, 0), *out = tensor_at(e, 8);
    Pool p;
    NEED(self && out && windows(&p, self, out, ints_at(e, 1), ints_at(e, 2), ints_at(e, 3), NULL), "the shapes do not fit");
    READY;
    return run_means(&p, self, out, false, integer_at(e, 5), integer_at(e, 6), false);
}

OP(AvgPool2dBackward, (const aclTensor *grad, const aclTensor *self, const aclIntArray *kernel, const aclIntArray *stride,
                       const aclIntArray *padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride,
                       int8_t cubeMathType, aclTensor *out),
   T(grad) T(self) I(kernel) I(stride) I(padding) N(ceilMode) N(countIncludePad) N(divisorOverride) N(cubeMathType) T(out)) {
    aclTensor *grad = tensor_at(e, 0), *self = tensor_at(e, 1), *out = tensor_at(e, 9);
    Pool p;
    NEED(grad && self && out && same_shape(self, out) &&
             windows(&p, self, grad, ints_at(e, 2), ints_at(e, 3), ints_at(e, 4), NULL), "the shapes do not fit");
    READY;
    return run_means(&p, grad, out, false, integer_at(e, 6), integer_at(e, 7), true);
}

OP(AdaptiveAvgPool2d, (const aclTensor *self, const aclIntArray *outputSize, aclTensor *out), T(self) I(outputSize) T(out)) {
    aclTensor *self = tensor_at(e, 0), *out = tensor_at(e, 2);
    Pool p = {0};
    NEED(self && out && planes_of(&p, self, out), "the shapes do not fit");
    READY;
    return run_means(&p, self, out, true, false, 0, false);
}

OP(AdaptiveAvgPool2dBackward, (const aclTensor *grad, const aclTensor *self, aclTensor *out), T(grad) T(self) T(out)) {
    aclTensor *grad = tensor_at(e, 0), *self = tensor_at(e, 1), *out = tensor_at(e, 2);
    Pool p = {0};
    NEED(grad && self && out && same_shape(self, out) && planes_of(&p, self, grad), "the shapes do not fit");
    READY;
    return run_means(&p, grad, out, true, false, 0, true);
}

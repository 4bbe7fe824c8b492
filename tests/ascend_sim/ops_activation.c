/* Activations and their derivatives, softmax along a dimension, dropout. */
#include "pointwise.h"

#define ROOT_2 1.41421356237309504880
#define ROOT_2_PI 2.50662827463100050242
#define TANH_INNER(x) ((x) * 0.79788456080286535588 * (1 + 0.044715 * (x) * (x)))

UNARY(Relu, x > 0 || x != x ? x : 0)
UNARY(Tanh, tanh(x))
UNARY(Sigmoid, 1 / (1 + exp(-(double)x)))

EXPRESSION(relu_gradient, y > a ? x : 0)
EXPRESSION(tanh_gradient, x * (1 - y * y))
EXPRESSION(sigmoid_gradient, x * y * (1 - y))
EXPRESSION(gelu, 0.5 * x * (1 + erf((double)x / ROOT_2)))
EXPRESSION(gelu_tanh, 0.5 * x * (1 + tanh(TANH_INNER((double)x))))
EXPRESSION(gelu_gradient, x * (0.5 * (1 + erf((double)y / ROOT_2)) + y * exp(-0.5 * (double)y * y) / ROOT_2_PI))
EXPRESSION(gelu_tanh_gradient, x * (0.5 * (1 + tanh(TANH_INNER((double)y))) +
                                    0.5 * y * (1 - tanh(TANH_INNER((double)y)) * tanh(TANH_INNER((double)y))) *
                                        0.79788456080286535588 * (1 + 3 * 0.044715 * (double)y * y)))

OP(ThresholdBackward, (const aclTensor *gradient, const aclTensor *self, const aclScalar *threshold, aclTensor *out),
   T(gradient) T(self) S(threshold) T(out)) {
    RUN(relu_gradient, 2, scalar_at(e, 2), NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 3));
}

OP(TanhBackward, (const aclTensor *gradient, const aclTensor *output, aclTensor *out),
   T(gradient) T(output) T(out)) {
    RUN(tanh_gradient, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2));
}

OP(SigmoidBackward, (const aclTensor *gradient, const aclTensor *output, aclTensor *out),
   T(gradient) T(output) T(out)) {
    RUN(sigmoid_gradient, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2));
}

OP(GeluV2, (const aclTensor *x, int64_t approximate, aclTensor *y), T(x) N(approximate) T(y)) {
    if (integer_at(e, 1)) RUN(gelu_tanh, 1, NULL, NULL, tensor_at(e, 0), tensor_at(e, 2));
    RUN(gelu, 1, NULL, NULL, tensor_at(e, 0), tensor_at(e, 2));
}

OP(GeluBackwardV2, (const aclTensor *gradient, const aclTensor *self, char *approximate, aclTensor *out),
   T(gradient) T(self) N(!strcmp(approximate, "tanh") ? 1 : !strcmp(approximate, "none") ? 0 : -1) T(out)) {
    NEED(integer_at(e, 2) >= 0, "approximate must be none or tanh");
    if (integer_at(e, 2)) RUN(gelu_tanh_gradient, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 3));
    RUN(gelu_gradient, 2, NULL, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 3));
}

/* ---------------------------------------------------------------- along one dimension */

typedef void (*Line)(const float *a, const float *b, float *out, int64_t n, int64_t step);

static int along(aclOpExecutor *e, Line line, aclTensor *first, aclTensor *second, int64_t dim, aclTensor *out) {
    NEED(first && out && same_shape(first, out), "the shapes do not fit");
    dim = normal_dim(dim, first->ndim);
    NEED(dim >= 0 && dim < (first->ndim ? first->ndim : 1), "there is no dimension %lld", (long long)dim);
    READY;
    int64_t outer = 1, n = first->ndim ? first->dims[dim] : 1, inner = 1;
    for (int i = 0; i < first->ndim; i++) {
        if (i < dim) outer *= first->dims[i];
        if (i > dim) inner *= first->dims[i];
    }
    float *a = pack(first), *b = second ? pack(second) : NULL;
    float *result = malloc(sizeof(float) * (size_t)(element_count(out) + 1));
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            int64_t at = i * n * inner + j;
            line(a + at, b ? b + at : NULL, result + at, n, inner);
        }
    free(a);
    free(b);
    unpack(result, out);
    return ACL_SUCCESS;
}

static float largest(const float *a, int64_t n, int64_t step) {
    float found = -INFINITY;
    for (int64_t i = 0; i < n; i++) found = a[i * step] > found || a[i * step] != a[i * step] ? a[i * step] : found;
    return found;
}

static void softmax_line(const float *a, const float *b, float *out, int64_t n, int64_t step) {
    (void)b;
    float top = largest(a, n, step);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += out[i * step] = expf(a[i * step] - top);
    for (int64_t i = 0; i < n; i++) out[i * step] = (float)(out[i * step] / sum);
}

static void log_softmax_line(const float *a, const float *b, float *out, int64_t n, int64_t step) {
    (void)b;
    float top = largest(a, n, step);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += expf(a[i * step] - top);
    for (int64_t i = 0; i < n; i++) out[i * step] = (float)((double)a[i * step] - top - log(sum));
}

static void softmax_gradient_line(const float *g, const float *y, float *out, int64_t n, int64_t step) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)g[i * step] * y[i * step];
    for (int64_t i = 0; i < n; i++) out[i * step] = (float)(y[i * step] * (g[i * step] - sum));
}

static void log_softmax_gradient_line(const float *g, const float *y, float *out, int64_t n, int64_t step) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += g[i * step];
    for (int64_t i = 0; i < n; i++) out[i * step] = (float)(g[i * step] - exp((double)y[i * step]) * sum);
}

OP(Softmax, (const aclTensor *self, int64_t dim, aclTensor *out), T(self) N(dim) T(out)) {
    return along(e, softmax_line, tensor_at(e, 0), NULL, integer_at(e, 1), tensor_at(e, 2));
}

OP(LogSoftmax, (const aclTensor *self, int64_t dim, aclTensor *out), T(self) N(dim) T(out)) {
    return along(e, log_softmax_line, tensor_at(e, 0), NULL, integer_at(e, 1), tensor_at(e, 2));
}

OP(SoftmaxBackward, (const aclTensor *gradient, const aclTensor *output, int64_t dim, aclTensor *out),
   T(gradient) T(output) N(dim) T(out)) {
    return along(e, softmax_gradient_line, tensor_at(e, 0), tensor_at(e, 1), integer_at(e, 2), tensor_at(e, 3));
}

OP(LogSoftmaxBackward, (const aclTensor *gradient, const aclTensor *output, int64_t dim, aclTensor *out),
   T(gradient) T(output) N(dim) T(out)) {
    return along(e, log_softmax_gradient_line, tensor_at(e, 0), tensor_at(e, 1), integer_at(e, 2), tensor_at(e, 3));
}

/* ---------------------------------------------------------------- dropout: a mask of bits, then its use */

static uint64_t scramble(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

OP(DropoutGenMaskV2, (const aclIntArray *shape, double prob, int64_t seed, int64_t offset, aclDataType type, aclTensor *out),
   I(shape) F(prob) N(seed) N(offset) N(type) T(out)) {
    aclIntArray *shape = ints_at(e, 0);
    aclTensor *out = tensor_at(e, 5);
    int64_t count = 1;
    for (uint64_t i = 0; i < shape->size; i++) count *= shape->values[i];
    NEED(out && out->dtype == ACL_UINT8 && is_contiguous(out), "the mask must be contiguous bytes");
    NEED(element_count(out) >= (count + 127) / 128 * 16, "the mask is too small");
    READY;
    uint8_t *bits = (uint8_t *)out->data;
    memset(bits, 0, (size_t)element_count(out));
    for (int64_t i = 0; i < count; i++) {
        uint64_t drawn = scramble(scramble((uint64_t)integer_at(e, 2)) ^ (uint64_t)(integer_at(e, 3) + i));
        if ((double)(drawn >> 11) * 0x1p-53 >= real_at(e, 1)) bits[i / 8] |= (uint8_t)(1 << i % 8);
    }
    return ACL_SUCCESS;
}

OP(DropoutDoMask, (const aclTensor *self, const aclTensor *mask, double prob, aclTensor *out),
   T(self) T(mask) F(prob) T(out)) {
    aclTensor *self = tensor_at(e, 0), *mask = tensor_at(e, 1), *out = tensor_at(e, 3);
    NEED(self && mask && out && same_shape(self, out), "the shapes do not fit");
    READY;
    double keep = 1 - real_at(e, 2);
    const uint8_t *bits = (const uint8_t *)mask->data;
    float *values = pack(self);
    for (int64_t i = 0; i < element_count(self); i++)
        values[i] = bits[i / 8] >> i % 8 & 1 ? (float)(values[i] / keep) : 0;
    unpack(values, out);
    return ACL_SUCCESS;
}

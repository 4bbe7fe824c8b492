/* Convolution in one or two dimensions and its derivatives: windows are laid out as columns and multiplied as matrices. */
#include "ops.h"

typedef struct Geometry {
    int64_t batch, in, h, w, out, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw, groups;
} Geometry;

static int64_t size_at(const aclIntArray *a, int i) { return a->size == 1 ? a->values[0] : a->values[i]; }

/* False: the shapes do not fit together. One spatial dimension counts as a height of one. */
static bool geometry(Geometry *g, const aclTensor *input, const aclTensor *weight, const aclTensor *output,
                     const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, int64_t groups) {
    int n = input->ndim;
    if ((n != 3 && n != 4) || weight->ndim != n || output->ndim != n || groups < 1) return false;
    bool flat = n == 3;
    *g = (Geometry){.batch = input->dims[0], .in = input->dims[1], .h = flat ? 1 : input->dims[2], .w = input->dims[n - 1],
                    .out = weight->dims[0], .kh = flat ? 1 : weight->dims[2], .kw = weight->dims[n - 1],
                    .oh = flat ? 1 : output->dims[2], .ow = output->dims[n - 1], .sh = flat ? 1 : size_at(stride, 0),
                    .sw = size_at(stride, n - 3), .ph = flat ? 0 : size_at(padding, 0), .pw = size_at(padding, n - 3),
                    .dh = flat ? 1 : size_at(dilation, 0), .dw = size_at(dilation, n - 3), .groups = groups};
    return g->in == weight->dims[1] * groups && g->out % groups == 0 && output->dims[0] == g->batch &&
           output->dims[1] == g->out && g->oh == (g->h + 2 * g->ph - g->dh * (g->kh - 1) - 1) / g->sh + 1 &&
           g->ow == (g->w + 2 * g->pw - g->dw * (g->kw - 1) - 1) / g->sw + 1;
}

/* Between an image's channels of one group and columns[channel * kh * kw, oh * ow]; `back` adds the columns up again. */
static void columns(const Geometry *g, float *image, float *column, bool back) {
    int64_t channels = g->in / g->groups;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < g->kh; i++)
            for (int64_t j = 0; j < g->kw; j++)
                for (int64_t y = 0; y < g->oh; y++) {
                    int64_t row = y * g->sh - g->ph + i * g->dh;
                    for (int64_t x = 0; x < g->ow; x++, column++) {
                        int64_t at = x * g->sw - g->pw + j * g->dw;
                        bool inside = row >= 0 && row < g->h && at >= 0 && at < g->w;
                        float *pixel = inside ? image + (c * g->h + row) * g->w + at : NULL;
                        if (!back)
                            *column = pixel ? *pixel : 0;
                        else if (pixel)
                            *pixel += *column;
                    }
                }
}

/* out[m, n] += a[m, k] @ b[k, n] */
static void multiply(const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++) out[i * n + j] += a[i * k + l] * b[l * n + j];
}

OP(Convolution, (const aclTensor *input, const aclTensor *weight, const aclTensor *bias, const aclIntArray *stride,
                 const aclIntArray *padding, const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding,
                 int64_t groups, aclTensor *out, int8_t cubeMathType),
   T(input) T(weight) T(bias) I(stride) I(padding) I(dilation) N(transposed) I(outputPadding) N(groups) T(out)
   N(cubeMathType)) {
    aclTensor *input = tensor_at(e, 0), *weight = tensor_at(e, 1), *bias = tensor_at(e, 2), *out = tensor_at(e, 9);
    NEED(input && weight && out, "a tensor is missing");
    NEED(!integer_at(e, 6), "the simulator has no transposed convolution");
    Geometry g;
    NEED(geometry(&g, input, weight, out, ints_at(e, 3), ints_at(e, 4), ints_at(e, 5), integer_at(e, 8)),
         "the shapes do not fit");
    e->workspace_size = 4096;
    READY;
    int64_t area = g.oh * g.ow, per_group = g.out / g.groups, depth = g.in / g.groups * g.kh * g.kw;
    float *x = pack(input), *w = pack(weight), *b = bias ? pack(bias) : NULL;
    float *y = malloc(sizeof(float) * (size_t)(element_count(out) + 1));
    float *column = malloc(sizeof(float) * (size_t)(depth * area + 1));
    for (int64_t n = 0; n < g.batch; n++)
        for (int64_t group = 0; group < g.groups; group++) {
            float *to = y + (n * g.out + group * per_group) * area;
            for (int64_t k = 0; k < per_group; k++)
                for (int64_t i = 0; i < area; i++) to[k * area + i] = b ? b[group * per_group + k] : 0;
            columns(&g, x + (n * g.in + group * g.in / g.groups) * g.h * g.w, column, false);
            multiply(w + group * per_group * depth, column, to, per_group, depth, area);
        }
    free(x);
    free(w);
    free(b);
    free(column);
    unpack(y, out);
    return ACL_SUCCESS;
}

#define LANES 8 /* partial sums that a compiler can keep in one register */

static float dot(const float *a, const float *b, int64_t n) {
    float sums[LANES] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
    for (; i < n; i++) rest += a[i] * b[i];
    for (int lane = 0; lane < LANES; lane++) rest += sums[lane];
    return rest;
}

static void gradient_of_weight(const Geometry *g, const float *dy, const float *column, float *dw, int64_t depth) {
    int64_t area = g->oh * g->ow;
    for (int64_t k = 0; k < g->out / g->groups; k++)
        for (int64_t l = 0; l < depth; l++) dw[k * depth + l] += dot(dy + k * area, column + l * area, area);
}

static void gradient_of_column(const Geometry *g, const float *dy, const float *w, float *column, int64_t depth) {
    int64_t area = g->oh * g->ow;
    memset(column, 0, sizeof(float) * (size_t)(depth * area));
    for (int64_t k = 0; k < g->out / g->groups; k++)
        for (int64_t l = 0; l < depth; l++)
            for (int64_t i = 0; i < area; i++) column[l * area + i] += w[k * depth + l] * dy[k * area + i];
}

OP(ConvolutionBackward, (const aclTensor *grad, const aclTensor *input, const aclTensor *weight, const aclIntArray *biasSizes,
                         const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, bool transposed,
                         const aclIntArray *outputPadding, int groups, const aclBoolArray *mask, int8_t cubeMathType,
                         aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias),
   T(grad) T(input) T(weight) I(biasSizes) I(stride) I(padding) I(dilation) N(transposed) I(outputPadding) N(groups) B(mask)
   N(cubeMathType) T(gradInput) T(gradWeight) T(gradBias)) {
    aclTensor *grad = tensor_at(e, 0), *input = tensor_at(e, 1), *weight = tensor_at(e, 2);
    NEED(grad && input && weight, "a tensor is missing");
    NEED(!integer_at(e, 7), "the simulator has no transposed convolution");
    for (int i = 0; i < 3; i++) NEED(!bool_at(e, 10, i) || tensor_at(e, 12 + i), "result %d is missing", i);
    Geometry g;
    NEED(geometry(&g, input, weight, grad, ints_at(e, 4), ints_at(e, 5), ints_at(e, 6), integer_at(e, 9)),
         "the shapes do not fit");
    e->workspace_size = 4096;
    READY;
    int64_t area = g.oh * g.ow, per_group = g.out / g.groups, depth = g.in / g.groups * g.kh * g.kw;
    float *dy = pack(grad), *x = pack(input), *w = pack(weight);
    float *dx = calloc((size_t)element_count(input) + 1, sizeof(float));
    float *dw = calloc((size_t)element_count(weight) + 1, sizeof(float)), *db = calloc((size_t)g.out + 1, sizeof(float));
    float *column = malloc(sizeof(float) * (size_t)(depth * area + 1));
    for (int64_t n = 0; n < g.batch; n++)
        for (int64_t group = 0; group < g.groups; group++) {
            const float *dy_group = dy + (n * g.out + group * per_group) * area;
            int64_t image = (n * g.in + group * g.in / g.groups) * g.h * g.w, filter = group * per_group * depth;
            if (bool_at(e, 10, 1)) {
                columns(&g, x + image, column, false);
                gradient_of_weight(&g, dy_group, column, dw + filter, depth);
            }
            if (bool_at(e, 10, 0)) {
                gradient_of_column(&g, dy_group, w + filter, column, depth);
                columns(&g, dx + image, column, true);
            }
        }
    for (int64_t k = 0; k < g.out; k++) {
        double sum = 0;
        for (int64_t n = 0; n < g.batch; n++)
            for (int64_t i = 0; i < area; i++) sum += dy[(n * g.out + k) * area + i];
        db[k] = (float)sum;
    }
    float *results[] = {dx, dw, db};
    for (int i = 0; i < 3; i++) {
        if (bool_at(e, 10, i)) unpack(results[i], tensor_at(e, 12 + i));
        else free(results[i]);
    }
    free(dy);
    free(x);
    free(w);
    free(column);
    return ACL_SUCCESS;
}

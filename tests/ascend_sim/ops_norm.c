/* Layer and batch normalization with their derivatives. */
#include "ops.h"

/* ---------------------------------------------------------------- layer norm: rows of `width` elements */

static int64_t row_width(const aclTensor *input, const aclIntArray *shape) {
    int64_t width = 1;
    if ((int)shape->size > input->ndim) return -1;
    for (uint64_t i = 0; i < shape->size; i++) {
        if (input->dims[input->ndim - (int)shape->size + (int)i] != shape->values[i]) return -1;
        width *= shape->values[i];
    }
    return width;
}

static float *pack_or_null(const aclTensor *t) { return t ? pack(t) : NULL; }

static void unpack_or_free(float *values, const aclTensor *t) {
    if (t) unpack(values, t);
    else free(values);
}

OP(LayerNorm, (const aclTensor *input, const aclIntArray *shape, const aclTensor *weight, const aclTensor *bias, double eps,
               aclTensor *out, aclTensor *mean, aclTensor *rstd),
   T(input) I(shape) T(weight) T(bias) F(eps) T(out) T(mean) T(rstd)) {
    aclTensor *input = tensor_at(e, 0), *out = tensor_at(e, 5), *means = tensor_at(e, 6), *rstds = tensor_at(e, 7);
    NEED(input && out && same_shape(input, out), "the shapes do not fit");
    int64_t width = row_width(input, ints_at(e, 1));
    NEED(width > 0, "normalizedShape does not fit the input");
    READY;
    int64_t rows = element_count(input) / width;
    float *x = pack(input), *w = pack_or_null(tensor_at(e, 2)), *b = pack_or_null(tensor_at(e, 3));
    float *m = malloc(sizeof(float) * (size_t)(rows + 1)), *r = malloc(sizeof(float) * (size_t)(rows + 1));
    for (int64_t i = 0; i < rows; i++) {
        float *row = x + i * width;
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < width; j++) sum += row[j];
        double mean = sum / (double)width;
        for (int64_t j = 0; j < width; j++) squares += (row[j] - mean) * (row[j] - mean);
        double rstd = 1 / sqrt(squares / (double)width + real_at(e, 4));
        m[i] = (float)mean;
        r[i] = (float)rstd;
        for (int64_t j = 0; j < width; j++) row[j] = (float)((row[j] - mean) * rstd * (w ? w[j] : 1) + (b ? b[j] : 0));
    }
    free(w);
    free(b);
    unpack(x, out);
    unpack_or_free(m, means);
    unpack_or_free(r, rstds);
    return ACL_SUCCESS;
}

OP(LayerNormBackward, (const aclTensor *grad, const aclTensor *input, const aclIntArray *shape, const aclTensor *mean,
                       const aclTensor *rstd, const aclTensor *weight, const aclTensor *bias, const aclBoolArray *mask,
                       aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias),
   T(grad) T(input) I(shape) T(mean) T(rstd) T(weight) T(bias) B(mask) T(gradInput) T(gradWeight) T(gradBias)) {
    aclTensor *grad = tensor_at(e, 0), *input = tensor_at(e, 1);
    NEED(grad && input && same_shape(grad, input) && tensor_at(e, 3) && tensor_at(e, 4), "the shapes do not fit");
    int64_t width = row_width(input, ints_at(e, 2));
    NEED(width > 0, "normalizedShape does not fit the input");
    for (int i = 0; i < 3; i++) NEED(!bool_at(e, 7, i) || tensor_at(e, 8 + i), "result %d is missing", i);
    READY;
    int64_t rows = element_count(input) / width;
    float *g = pack(grad), *x = pack(input), *m = pack(tensor_at(e, 3)), *r = pack(tensor_at(e, 4));
    float *w = pack_or_null(tensor_at(e, 5)), *to_input = malloc(sizeof(float) * (size_t)(rows * width + 1));
    double *to_weight = calloc((size_t)width + 1, sizeof(double)), *to_bias = calloc((size_t)width + 1, sizeof(double));
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0, sum_with_x = 0;
        for (int64_t j = 0; j < width; j++) {
            double normal = ((double)x[i * width + j] - m[i]) * r[i], g_j = g[i * width + j], scaled = g_j * (w ? w[j] : 1);
            sum += scaled;
            sum_with_x += scaled * normal;
            to_weight[j] += g_j * normal;
            to_bias[j] += g_j;
        }
        for (int64_t j = 0; j < width; j++) {
            double normal = ((double)x[i * width + j] - m[i]) * r[i], scaled = (double)g[i * width + j] * (w ? w[j] : 1);
            to_input[i * width + j] = (float)(r[i] * (scaled - (sum + normal * sum_with_x) / (double)width));
        }
    }
    float *weights = malloc(sizeof(float) * (size_t)(width + 1)), *biases = malloc(sizeof(float) * (size_t)(width + 1));
    for (int64_t j = 0; j < width; j++) weights[j] = (float)to_weight[j], biases[j] = (float)to_bias[j];
    unpack_or_free(to_input, bool_at(e, 7, 0) ? tensor_at(e, 8) : NULL);
    unpack_or_free(weights, bool_at(e, 7, 1) ? tensor_at(e, 9) : NULL);
    unpack_or_free(biases, bool_at(e, 7, 2) ? tensor_at(e, 10) : NULL);
    free(g);
    free(x);
    free(m);
    free(r);
    free(w);
    free(to_weight);
    free(to_bias);
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- batch norm: channels are the second dimension */

typedef struct Channels {
    int64_t batch, count, area;
} Channels;

static Channels channels_of(const aclTensor *input) {
    Channels c = {input->dims[0], input->dims[1], 1};
    for (int i = 2; i < input->ndim; i++) c.area *= input->dims[i];
    return c;
}

#define EACH(c, channel, body)                                           \
    for (int64_t n_ = 0; n_ < (c).batch; n_++)                           \
        for (int64_t k_ = 0; k_ < (c).area; k_++) {                      \
            const int64_t i = (n_ * (c).count + (channel)) * (c).area + k_; \
            body;                                                        \
        }

OP(BatchNorm, (const aclTensor *input, const aclTensor *weight, const aclTensor *bias, aclTensor *runningMean,
               aclTensor *runningVar, bool training, double momentum, double eps, aclTensor *out, aclTensor *saveMean,
               aclTensor *saveInvstd),
   T(input) T(weight) T(bias) T(runningMean) T(runningVar) N(training) F(momentum) F(eps) T(out) T(saveMean) T(saveInvstd)) {
    aclTensor *input = tensor_at(e, 0), *out = tensor_at(e, 8), *running_mean = tensor_at(e, 3), *running_var = tensor_at(e, 4);
    NEED(input && out && input->ndim >= 2 && same_shape(input, out), "the shapes do not fit");
    bool training = integer_at(e, 5) != 0;
    NEED(training || (running_mean && running_var), "running statistics are needed");
    READY;
    Channels c = channels_of(input);
    double count = (double)(c.batch * c.area), momentum = real_at(e, 6);
    float *x = pack(input), *w = pack_or_null(tensor_at(e, 1)), *b = pack_or_null(tensor_at(e, 2));
    float *rm = pack_or_null(running_mean), *rv = pack_or_null(running_var);
    float *means = malloc(sizeof(float) * (size_t)(c.count + 1)), *invstds = malloc(sizeof(float) * (size_t)(c.count + 1));
    for (int64_t k = 0; k < c.count; k++) {
        double mean = training ? 0 : rm[k], var = training ? 0 : rv[k];
        if (training) {
            EACH(c, k, mean += x[i])
            mean /= count;
            EACH(c, k, var += (x[i] - mean) * (x[i] - mean))
            if (rm) rm[k] = (float)((1 - momentum) * rm[k] + momentum * mean);
            if (rv) rv[k] = (float)((1 - momentum) * rv[k] + momentum * var / (count - 1));
            var /= count;
        }
        double invstd = 1 / sqrt(var + real_at(e, 7));
        means[k] = (float)mean;
        invstds[k] = (float)invstd;
        EACH(c, k, x[i] = (float)((x[i] - mean) * invstd * (w ? w[k] : 1) + (b ? b[k] : 0)))
    }
    free(w);
    free(b);
    unpack(x, out);
    unpack_or_free(rm, training ? running_mean : NULL);
    unpack_or_free(rv, training ? running_var : NULL);
    unpack_or_free(means, training ? tensor_at(e, 9) : NULL);
    unpack_or_free(invstds, training ? tensor_at(e, 10) : NULL);
    return ACL_SUCCESS;
}

OP(BatchNormBackward, (const aclTensor *grad, const aclTensor *input, const aclTensor *weight, const aclTensor *runningMean,
                       const aclTensor *runningVar, const aclTensor *saveMean, const aclTensor *saveInvstd, bool training,
                       double eps, const aclBoolArray *mask, aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias),
   T(grad) T(input) T(weight) T(runningMean) T(runningVar) T(saveMean) T(saveInvstd) N(training) F(eps) B(mask) T(gradInput)
   T(gradWeight) T(gradBias)) {
    aclTensor *grad = tensor_at(e, 0), *input = tensor_at(e, 1);
    NEED(grad && input && input->ndim >= 2 && same_shape(grad, input), "the shapes do not fit");
    bool training = integer_at(e, 7) != 0;
    NEED(training ? tensor_at(e, 5) && tensor_at(e, 6) : tensor_at(e, 3) && tensor_at(e, 4), "statistics are missing");
    READY;
    Channels c = channels_of(input);
    double count = (double)(c.batch * c.area);
    float *g = pack(grad), *x = pack(input), *w = pack_or_null(tensor_at(e, 2));
    float *mean = pack(tensor_at(e, training ? 5 : 3)), *spread = pack(tensor_at(e, training ? 6 : 4));
    float *to_weight = malloc(sizeof(float) * (size_t)(c.count + 1)), *to_bias = malloc(sizeof(float) * (size_t)(c.count + 1));
    for (int64_t k = 0; k < c.count; k++) {
        double invstd = training ? spread[k] : 1 / sqrt(spread[k] + real_at(e, 8)), sum = 0, with_x = 0;
        EACH(c, k, sum += g[i]; with_x += g[i] * (x[i] - (double)mean[k]) * invstd)
        to_weight[k] = (float)with_x;
        to_bias[k] = (float)sum;
        double scale = invstd * (w ? w[k] : 1);
        if (training) {
            EACH(c, k, x[i] = (float)(scale * (g[i] - (sum + (x[i] - (double)mean[k]) * invstd * with_x) / count)))
        } else {
            EACH(c, k, x[i] = (float)(scale * g[i]))
        }
    }
    free(g);
    free(w);
    free(mean);
    free(spread);
    unpack_or_free(x, bool_at(e, 9, 0) ? tensor_at(e, 10) : NULL);
    unpack_or_free(to_weight, bool_at(e, 9, 1) ? tensor_at(e, 11) : NULL);
    unpack_or_free(to_bias, bool_at(e, 9, 2) ? tensor_at(e, 12) : NULL);
    return ACL_SUCCESS;
}

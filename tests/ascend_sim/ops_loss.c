/* Losses and their derivatives. Reduction 0: none, 1: mean, 2: sum. */
#include "pointwise.h"

EXPRESSION(squared_difference, (x - y) * (x - y))
EXPRESSION(squared_difference_gradient, a * x * (y - z))

OP(MseLoss, (const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out),
   T(self) T(target) N(reduction) T(out)) {
    aclTensor *self = tensor_at(e, 0), *target = tensor_at(e, 1), *out = tensor_at(e, 3);
    int64_t reduction = integer_at(e, 2);
    NEED(self && target && out && same_shape(self, target), "the shapes do not fit");
    if (!reduction) RUN(squared_difference, 2, NULL, NULL, self, target, out);
    NEED(element_count(out) == 1, "the result must have one element");
    READY;
    float *a = pack(self), *b = pack(target);
    double sum = 0;
    int64_t count = element_count(self);
    for (int64_t i = 0; i < count; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    store(out->data, out->dtype, reduction == 1 ? sum / (double)count : sum);
    free(a);
    free(b);
    return ACL_SUCCESS;
}

OP(MseLossBackward, (const aclTensor *grad, const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out),
   T(grad) T(self) T(target) N(reduction) T(out)) {
    aclTensor *out = tensor_at(e, 4);
    NEED(out, "no result");
    aclScalar scale = {ACL_DOUBLE, integer_at(e, 3) == 1 ? 2.0 / (double)element_count(out) : 2.0, 2};
    RUN(squared_difference_gradient, 3, &scale, NULL, tensor_at(e, 0), tensor_at(e, 1), tensor_at(e, 2), out);
}

/* ---------------------------------------------------------------- negative log likelihood */

typedef struct Rows {
    int64_t count, classes;
} Rows;

static Rows rows_of(const aclTensor *self) {
    return self->ndim == 1 ? (Rows){1, self->dims[0]} : (Rows){self->dims[0], self->dims[1]};
}

static int64_t target_at(const aclTensor *target, int64_t i) {
    int64_t step = target->ndim ? target->strides[0] : 0;
    return load_integer(target->data + i * step * (int64_t)sim_item_size(target->dtype), target->dtype);
}

OP(NLLLoss, (const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction, int64_t ignoreIndex,
             aclTensor *out, aclTensor *totalWeight),
   T(self) T(target) T(weight) N(reduction) N(ignoreIndex) T(out) T(totalWeight)) {
    aclTensor *self = tensor_at(e, 0), *target = tensor_at(e, 1), *weight = tensor_at(e, 2);
    aclTensor *out = tensor_at(e, 5), *total = tensor_at(e, 6);
    NEED(self && target && weight && out && total && (self->ndim == 1 || self->ndim == 2), "a tensor is missing");
    Rows rows = rows_of(self);
    int64_t reduction = integer_at(e, 3), ignored = integer_at(e, 4);
    NEED(element_count(target) == rows.count && element_count(weight) == rows.classes, "the shapes do not fit");
    NEED(element_count(out) == (reduction ? 1 : rows.count), "the result has the wrong shape");
    READY;
    float *log_likelihood = pack(self), *weights = pack(weight), *losses = calloc((size_t)rows.count + 1, sizeof(float));
    double sum = 0, weight_sum = 0;
    int code = ACL_SUCCESS;
    for (int64_t i = 0; i < rows.count; i++) {
        int64_t class = target_at(target, i);
        if (class == ignored) continue;
        if (class < 0 || class >= rows.classes) {
            code = sim_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel NLLLoss: class %lld of %lld", (long long)class,
                            (long long)rows.classes);
            break;
        }
        losses[i] = -weights[class] * log_likelihood[i * rows.classes + class];
        sum += losses[i];
        weight_sum += weights[class];
    }
    if (reduction) store(out->data, out->dtype, reduction == 1 ? sum / weight_sum : sum);
    store(total->data, total->dtype, weight_sum);
    free(log_likelihood);
    free(weights);
    if (!reduction && !code) unpack(losses, out);
    else free(losses);
    return code;
}

OP(NLLLossBackward, (const aclTensor *grad, const aclTensor *self, const aclTensor *target, const aclTensor *weight,
                     int64_t reduction, int64_t ignoreIndex, const aclTensor *totalWeight, aclTensor *out),
   T(grad) T(self) T(target) T(weight) N(reduction) N(ignoreIndex) T(totalWeight) T(out)) {
    aclTensor *grad = tensor_at(e, 0), *self = tensor_at(e, 1), *target = tensor_at(e, 2), *weight = tensor_at(e, 3);
    aclTensor *total = tensor_at(e, 6), *out = tensor_at(e, 7);
    NEED(grad && self && target && weight && total && out && same_shape(self, out), "the shapes do not fit");
    READY;
    Rows rows = rows_of(self);
    int64_t reduction = integer_at(e, 4), ignored = integer_at(e, 5);
    float *g = pack(grad), *weights = pack(weight), *result = calloc((size_t)element_count(out) + 1, sizeof(float));
    double scale = reduction == 1 ? 1 / load(total->data, total->dtype) : 1;
    for (int64_t i = 0; i < rows.count; i++) {
        int64_t class = target_at(target, i);
        if (class != ignored && class >= 0 && class < rows.classes)
            result[i * rows.classes + class] = (float)(-weights[class] * g[reduction ? 0 : i] * scale);
    }
    free(g);
    free(weights);
    unpack(result, out);
    return ACL_SUCCESS;
}

/* libopapi: the two phases of an operator call, elements of every data type, and walking over strided tensors. */
#include "ops.h"

#include <stdarg.h>
#include <stdio.h>

/* ---------------------------------------------------------------- the two phases */

aclOpExecutor *op_begin(const char *name, Kernel kernel) {
    aclOpExecutor *e = calloc(1, sizeof *e);
    e->name = name;
    e->kernel = kernel;
    e->planning = true;
    sim_count("executors", 1);
    return e;
}

static Argument *next_argument(aclOpExecutor *e, bool given) {
    Argument *argument = &e->arguments[e->count++];
    argument->given = given;
    return argument;
}

void take_tensor(aclOpExecutor *e, const aclTensor *tensor) {
    Argument *argument = next_argument(e, tensor != NULL);
    if (tensor) argument->tensor = *tensor;
}

void take_list(aclOpExecutor *e, const aclTensorList *list) {
    Argument *argument = next_argument(e, list != NULL);
    if (!list) return;
    argument->count = (int)list->size;
    argument->list = calloc(list->size ? list->size : 1, sizeof(aclTensor));
    for (uint64_t i = 0; i < list->size; i++) argument->list[i] = *list->values[i];
}

void take_scalar(aclOpExecutor *e, const aclScalar *scalar) {
    Argument *argument = next_argument(e, scalar != NULL);
    if (scalar) argument->scalar = *scalar;
}

void take_ints(aclOpExecutor *e, const aclIntArray *array) {
    Argument *argument = next_argument(e, array != NULL);
    if (array) argument->ints = *array;
}

void take_bools(aclOpExecutor *e, const aclBoolArray *array) {
    Argument *argument = next_argument(e, array != NULL);
    if (!array) return;
    argument->ints.size = array->size;
    for (uint64_t i = 0; i < array->size; i++) argument->ints.values[i] = array->values[i];
}

void take_integer(aclOpExecutor *e, int64_t value) { next_argument(e, true)->integer = value; }

void take_real(aclOpExecutor *e, double value) { next_argument(e, true)->real = value; }

int refuse(aclOpExecutor *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    return ACLNN_ERR_PARAM_INVALID;
}

int op_plan(aclOpExecutor *e, uint64_t *workspace_size, aclOpExecutor **executor) {
    int code = sim_enter();
    if (!code) {
        code = e->kernel(e);
        if (code) sim_fail(code, "aclnn%s: %s", e->name, e->message);
    }
    if (code) {
        sim_end_executor(e);
        return code;
    }
    e->planning = false;
    *workspace_size = e->workspace_size;
    *executor = e;
    return ACL_SUCCESS;
}

/* From the device's addresses, which only now must be alive, to those the kernel may use. */
static bool locate(aclTensor *t) {
    if (!element_count(t)) return true;
    int64_t last = 0;
    for (int i = 0; i < t->ndim; i++) last += (t->dims[i] - 1) * t->strides[i];
    t->data = sim_host_view(t->data, (uint64_t)(last + 1) * sim_item_size(t->dtype));
    return t->data != NULL;
}

static int op_run(void *given) {
    aclOpExecutor *e = given;
    for (int i = 0; i < e->count; i++) {
        Argument *argument = &e->arguments[i];
        bool found = !argument->given || !argument->tensor.data || locate(&argument->tensor);
        for (int j = 0; j < argument->count; j++) found = found && locate(&argument->list[j]);
        if (!found)
            return sim_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s: argument %d is outside of device memory", e->name, i);
    }
    if (e->workspace_size && !(e->workspace = sim_host_view(e->workspace, e->workspace_size)))
        return sim_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s: no workspace", e->name);
    sim_count("kernels", 1);
    return e->kernel(e);
}

int op_launch(void *workspace, uint64_t workspace_size, aclOpExecutor *e, aclrtStream stream, const char *name) {
    if (!e) return sim_fail(ACLNN_ERR_PARAM_NULLPTR, "aclnn%s: no executor", name);
    int code = sim_enter();
    if (!code && strcmp(e->name, name))
        code = sim_fail(ACLNN_ERR_PARAM_INVALID, "aclnn%s: the executor is that of aclnn%s", name, e->name);
    if (!code && (workspace_size < e->workspace_size || (e->workspace_size && !workspace)))
        code = sim_fail(ACLNN_ERR_PARAM_INVALID, "aclnn%s: the workspace is too small", name);
    if (code) {
        sim_end_executor(e);
        return code;
    }
    e->workspace = workspace;
    int64_t start = sim_api_begin();
    code = sim_enqueue(stream, e->name, op_run, e, sim_end_executor);
    sim_api_end("aclnn", name, start);
    return code;
}

/* ---------------------------------------------------------------- elements */

float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023, out;
    if (exponent == 31)
        out = sign | 0x7F800000 | fraction << 13;
    else if (exponent)
        out = sign | (exponent + 112) << 23 | fraction << 13;
    else
        return (sign ? -1.0f : 1.0f) * ldexpf((float)fraction, -24);
    float value;
    memcpy(&value, &out, 4);
    return value;
}

uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = fabsf(value);
    if (value != value) return sign | 0x7E00;
    if (size >= 65520.0f) return sign | 0x7C00;
    if (size < 6.103515625e-05f) return sign | (uint16_t)nearbyintf(size * 16777216.0f);
    bits = (bits & 0x7FFFFFFF) + 0xFFF + (bits >> 13 & 1); /* to nearest, ties to even */
    return sign | (uint16_t)((bits >> 13) - (112 << 10));
}

static float bf16_to_float(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

static uint16_t float_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (value != value) return 0x7FC0;
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

int64_t load_integer(const char *p, aclDataType dtype) {
    switch (dtype) {
        case ACL_INT64: return *(const int64_t *)p;
        case ACL_INT32: return *(const int32_t *)p;
        case ACL_INT16: return *(const int16_t *)p;
        case ACL_INT8: return *(const int8_t *)p;
        case ACL_UINT8: case ACL_BOOL: return *(const uint8_t *)p;
        default: return (int64_t)load(p, dtype);
    }
}

void store_integer(char *p, aclDataType dtype, int64_t value) {
    switch (dtype) {
        case ACL_INT64: *(int64_t *)p = value; break;
        case ACL_INT32: *(int32_t *)p = (int32_t)value; break;
        case ACL_INT16: *(int16_t *)p = (int16_t)value; break;
        case ACL_INT8: *(int8_t *)p = (int8_t)value; break;
        case ACL_UINT8: *(uint8_t *)p = (uint8_t)value; break;
        case ACL_BOOL: *(uint8_t *)p = value != 0; break;
        default: store(p, dtype, (double)value);
    }
}

double load_slowly(const char *p, aclDataType dtype) {
    switch (dtype) {
        case ACL_FLOAT: return *(const float *)p;
        case ACL_DOUBLE: return *(const double *)p;
        case ACL_FLOAT16: return half_to_float(*(const uint16_t *)p);
        case ACL_BF16: return bf16_to_float(*(const uint16_t *)p);
        default: return (double)load_integer(p, dtype);
    }
}

void store_slowly(char *p, aclDataType dtype, double value) {
    switch (dtype) {
        case ACL_FLOAT: *(float *)p = (float)value; break;
        case ACL_DOUBLE: *(double *)p = value; break;
        case ACL_FLOAT16: *(uint16_t *)p = float_to_half((float)value); break;
        case ACL_BF16: *(uint16_t *)p = float_to_bf16((float)value); break;
        case ACL_BOOL: *(uint8_t *)p = value != 0; break;
        default: store_integer(p, dtype, (int64_t)value);
    }
}

/* ---------------------------------------------------------------- shapes */

int64_t element_count(const aclTensor *t) {
    int64_t count = 1;
    for (int i = 0; i < t->ndim; i++) count *= t->dims[i];
    return count;
}

bool is_contiguous(const aclTensor *t) {
    int64_t step = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->dims[i] != 1 && t->strides[i] != step) return false;
        step *= t->dims[i];
    }
    return true;
}

bool same_shape(const aclTensor *a, const aclTensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool broadcasts_to(const aclTensor *t, const aclTensor *out) {
    if (t->ndim > out->ndim) return false;
    for (int i = 0; i < t->ndim; i++) {
        int64_t n = t->dims[t->ndim - 1 - i];
        if (n != 1 && n != out->dims[out->ndim - 1 - i]) return false;
    }
    return true;
}

int64_t normal_dim(int64_t dim, int ndim) { return dim < 0 ? dim + (ndim ? ndim : 1) : dim; }

bool all_float32(aclOpExecutor *e) {
    for (int i = 0; i < e->count; i++)
        if (e->arguments[i].given && e->arguments[i].tensor.data && e->arguments[i].tensor.dtype != ACL_FLOAT) return false;
    return true;
}

/* ---------------------------------------------------------------- walking */

void walk_begin(Walk *walk, const aclTensor *shape, int operands, aclTensor *const *tensors) {
    memset(walk, 0, sizeof *walk);
    walk->operands = operands;
    walk->ndim = shape->ndim ? shape->ndim - 1 : 0;
    walk->rows = 1;
    for (int i = 0; i < walk->ndim; i++) walk->rows *= walk->dims[i] = shape->dims[i];
    walk->length = shape->ndim ? shape->dims[shape->ndim - 1] : 1;
    for (int k = 0; k < operands; k++) {
        const aclTensor *t = tensors[k];
        int64_t item = (int64_t)sim_item_size(t->dtype);
        walk->p[k] = t->data;
        walk->dtype[k] = t->dtype;
        for (int i = 0; i < t->ndim; i++) {
            int to = shape->ndim - t->ndim + i;
            int64_t step = t->dims[i] == 1 ? 0 : t->strides[i] * item;
            if (to == shape->ndim - 1)
                walk->inner[k] = step;
            else
                walk->steps[k][to] = step;
        }
    }
}

/* True: `p` points at the start of the next row. */
bool walk_row(Walk *walk) {
    if (walk->row == walk->rows) return false;
    if (walk->row++) {
        for (int i = walk->ndim - 1; i >= 0; i--) {
            bool carried = ++walk->at[i] == walk->dims[i];
            if (carried) walk->at[i] = 0;
            for (int k = 0; k < walk->operands; k++)
                walk->p[k] += carried ? -walk->steps[k][i] * (walk->dims[i] - 1) : walk->steps[k][i];
            if (!carried) break;
        }
    }
    return true;
}

float *pack(const aclTensor *t) {
    float *values = malloc(sizeof(float) * (size_t)(element_count(t) + 1)), *to = values;
    if (t->dtype == ACL_FLOAT && is_contiguous(t)) {
        if (element_count(t)) memcpy(values, t->data, sizeof(float) * (size_t)element_count(t));
        return values;
    }
    Walk walk;
    walk_begin(&walk, t, 1, (aclTensor *const[]){(aclTensor *)t});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) *to++ = (float)load(walk.p[0] + i * walk.inner[0], t->dtype);
    return values;
}

void unpack(float *values, const aclTensor *t) {
    const float *from = values;
    Walk walk;
    walk_begin(&walk, t, 1, (aclTensor *const[]){(aclTensor *)t});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++) store(walk.p[0] + i * walk.inner[0], t->dtype, *from++);
    free(values);
}

char *pack_bytes(const aclTensor *t) {
    size_t item = sim_item_size(t->dtype);
    char *bytes = malloc(item * (size_t)(element_count(t) + 1)), *to = bytes;
    Walk walk;
    walk_begin(&walk, t, 1, (aclTensor *const[]){(aclTensor *)t});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++, to += item) memcpy(to, walk.p[0] + i * walk.inner[0], item);
    return bytes;
}

void unpack_bytes(char *bytes, const aclTensor *t) {
    size_t item = sim_item_size(t->dtype);
    const char *from = bytes;
    Walk walk;
    walk_begin(&walk, t, 1, (aclTensor *const[]){(aclTensor *)t});
    while (walk_row(&walk))
        for (int64_t i = 0; i < walk.length; i++, from += item) memcpy(walk.p[0] + i * walk.inner[0], from, item);
    free(bytes);
}

/* libnnopbase: the descriptions of tensors, scalars and lists that operator calls take. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

EXPORT size_t sim_item_size(aclDataType dtype) {
    switch (dtype) {
        case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: return 2;
        case ACL_FLOAT: case ACL_INT32: return 4;
        case ACL_INT64: case ACL_DOUBLE: case ACL_COMPLEX64: return 8;
        case ACL_COMPLEX128: return 16;
        case ACL_BOOL: case ACL_INT8: case ACL_UINT8: return 1;
    }
    return 0;
}

static void *counted(size_t size) {
    sim_count("descriptors", 1);
    return calloc(1, size);
}

EXPORT aclTensor *aclCreateTensor(const int64_t *dims, uint64_t ndim, aclDataType dtype, const int64_t *strides,
                                  int64_t offset, int format, const int64_t *storage_dims, uint64_t storage_ndim,
                                  void *data) {
    (void)storage_dims;
    (void)storage_ndim;
    if (ndim > MAX_DIMS || !sim_item_size(dtype)) {
        sim_fail(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: %d dimensions of data type %d", (int)ndim, (int)dtype);
        return NULL;
    }
    aclTensor *tensor = counted(sizeof *tensor);
    tensor->ndim = (int)ndim;
    tensor->dtype = dtype;
    tensor->format = format;
    int64_t step = 1;
    for (int i = (int)ndim - 1; i >= 0; i--) {
        tensor->dims[i] = dims[i];
        tensor->strides[i] = strides ? strides[i] : step;
        step *= dims[i];
    }
    tensor->data = data ? (char *)data + offset * (int64_t)sim_item_size(dtype) : NULL;
    return tensor;
}

EXPORT aclScalar *aclCreateScalar(const void *value, aclDataType dtype) {
    aclScalar made = {.dtype = dtype};
    switch (dtype) {
        case ACL_FLOAT: made.real = *(const float *)value; made.integer = (int64_t)made.real; break;
        case ACL_DOUBLE: made.real = *(const double *)value; made.integer = (int64_t)made.real; break;
        case ACL_INT64: made.integer = *(const int64_t *)value; made.real = (double)made.integer; break;
        case ACL_INT32: made.integer = *(const int32_t *)value; made.real = (double)made.integer; break;
        case ACL_BOOL: case ACL_UINT8: made.integer = *(const uint8_t *)value; made.real = (double)made.integer; break;
        default:
            sim_fail(ACLNN_ERR_PARAM_INVALID, "aclCreateScalar: data type %d", (int)dtype);
            return NULL;
    }
    aclScalar *scalar = counted(sizeof *scalar);
    *scalar = made;
    return scalar;
}

#define ARRAY(NAME, ITEM, MOST)                                                                                            \
    EXPORT acl##NAME *aclCreate##NAME(const ITEM *values, uint64_t size) {                                            \
        if (size > MOST) {                                                                                            \
            sim_fail(ACLNN_ERR_PARAM_INVALID, "aclCreate" #NAME ": more than %d values", MOST);                       \
            return NULL;                                                                                              \
        }                                                                                                             \
        acl##NAME *array = counted(sizeof *array);                                                                    \
        array->size = size;                                                                                           \
        if (size) memcpy(array->values, values, size * sizeof *values);                                               \
        return array;                                                                                                 \
    }

ARRAY(IntArray, int64_t, MAX_VALUES)
ARRAY(BoolArray, bool, MAX_VALUES)
ARRAY(FloatArray, float, MAX_VALUES)
ARRAY(TensorList, aclTensor *, MAX_TENSORS)

#define DESTROY(NAME)                                             \
    EXPORT aclnnStatus aclDestroy##NAME(const acl##NAME *given) { \
        if (!given) return ACLNN_ERR_PARAM_NULLPTR;               \
        free((void *)given);                                      \
        sim_count("descriptors", -1);                             \
        return ACL_SUCCESS;                                       \
    }

DESTROY(Tensor)
DESTROY(Scalar)
DESTROY(IntArray)
DESTROY(BoolArray)
DESTROY(FloatArray)

/* The tensors of a list belong to it, as in CANN: they go with it. */
EXPORT aclnnStatus aclDestroyTensorList(const aclTensorList *list) {
    if (!list) return ACLNN_ERR_PARAM_NULLPTR;
    for (uint64_t i = 0; i < list->size; i++) aclDestroyTensor(list->values[i]);
    free((void *)list);
    sim_count("descriptors", -1);
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- executors */

EXPORT void sim_end_executor(void *given) {
    aclOpExecutor *e = given;
    for (int i = 0; i < e->count; i++) free(e->arguments[i].list);
    free(e);
    sim_count("executors", -1);
}

/* For a call that was planned and will not be made. */
EXPORT aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) {
    if (!executor) return ACLNN_ERR_PARAM_NULLPTR;
    sim_end_executor(executor);
    return ACL_SUCCESS;
}

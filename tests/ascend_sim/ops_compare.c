/* Comparisons, element by element. */
#include "pointwise.h"

#define COMPARE(NAME, SIGN)                        \
    EXPRESSION(NAME##_tensors, x SIGN y)           \
    EXPRESSION(NAME##_number, x SIGN a)            \
    BINARY(NAME##Tensor, NAME##_tensors)           \
    WITH_NUMBER(NAME##Scalar, NAME##_number)

COMPARE(Eq, ==)
COMPARE(Ne, !=)
COMPARE(Lt, <)
COMPARE(Le, <=)
COMPARE(Gt, >)
COMPARE(Ge, >=)

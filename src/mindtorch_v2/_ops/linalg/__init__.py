"""Matrices and vectors: products, systems of equations, decompositions, norms and distances."""

from . import (
    decompositions,
    determinants,
    distance,
    ldl,
    lowrank,
    matmul,
    matrix_functions,
    products,
    qr,
    similarity,
    systems,
    triangular,
    vector_norm,
    vector_products,
)

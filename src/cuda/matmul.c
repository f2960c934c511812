#include "cuda/matmul.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cuda/matmul_choice.h"

/* The largest power of two up to 256 that divides the operand's place in the arena. */
static int alignment_of(const Program *program, Operand operand) {
    int64_t place = program_place(program, operand);
    int alignment = 256;
    while (place % alignment) alignment /= 2;
    return alignment;
}

static ProductKey key_of(const Program *program, const Operation *operation) {
    const MatmulShape *shape = &operation->matmul;
    Operand out = operation->outputs[0], addend = operation->inputs[2];
    int align_out = alignment_of(program, out);
    if (addend.buffer >= 0 && alignment_of(program, addend) < align_out)
        align_out = alignment_of(program, addend);
    return (ProductKey){.M = shape->M,
                        .N = shape->N,
                        .K = shape->K,
                        .transpose_a = shape->transpose_a,
                        .transpose_b = shape->transpose_b,
                        .adds = addend.buffer >= 0,
                        .operands = program->buffers[operation->inputs[0].buffer].dtype,
                        .out = program->buffers[out.buffer].dtype,
                        .align_a = alignment_of(program, operation->inputs[0]),
                        .align_b = alignment_of(program, operation->inputs[1]),
                        .align_out = align_out};
}

static bool same_key(const ProductKey *x, const ProductKey *y) {
    return x->M == y->M && x->N == y->N && x->K == y->K && x->transpose_a == y->transpose_a &&
           x->transpose_b == y->transpose_b && x->adds == y->adds && x->operands == y->operands &&
           x->out == y->out && x->align_a == y->align_a && x->align_b == y->align_b &&
           x->align_out == y->align_out;
}

/* The index of an operation's product, added if it is new; -1 when it cannot be had. */
static int add_product(Matmuls *matmuls, const Program *program, const Operation *operation,
                       Error *error) {
    ProductKey key = key_of(program, operation);
    for (size_t i = 0; i < matmuls->count; i++)
        if (same_key(&matmuls->products[i].key, &key)) return (int)i;
    Product *product = &matmuls->products[matmuls->count++];
    *product = (Product){.key = key};
    return product_open(matmuls->gpu, product, error) ? (int)matmuls->count - 1 : -1;
}

bool matmuls_open(Matmuls *matmuls, const Gpu *gpu, const Program *program, CUstream stream,
                  CUdeviceptr arena, Error *error) {
    *matmuls = (Matmuls){.gpu = gpu};
    size_t operations = (size_t)program->operation_count;
    matmuls->products = allocate(operations, sizeof *matmuls->products, error);
    matmuls->of_operation = allocate(operations, sizeof *matmuls->of_operation, error);
    Choice choice = {.matmuls = matmuls, .program = program, .arena = arena};
    bool done = matmuls->products && matmuls->of_operation && choice_begin(&choice, stream, error);
    for (size_t o = 0; done && o < operations; o++) {
        const Operation *operation = &program->operations[o];
        matmuls->of_operation[o] = -1;
        if (operation->kind != OP_MATMUL) continue;
        size_t before = matmuls->count;
        int index = matmuls->of_operation[o] = add_product(matmuls, program, operation, error);
        done = index >= 0 && (matmuls->count == before ||
                              choice_make(&choice, &matmuls->products[index], operation, error));
    }
    choice_end(&choice, done);
    return done;
}

void matmuls_close(Matmuls *matmuls) {
    for (size_t i = 0; i < matmuls->count; i++) product_close(matmuls->gpu, &matmuls->products[i]);
    free(matmuls->products);
    free(matmuls->of_operation);
    *matmuls = (Matmuls){0};
}

bool matmul_run(const Matmuls *matmuls, int index, const ProductOperands *operands, CUstream stream,
                Error *error) {
    const Product *product = &matmuls->products[matmuls->of_operation[index]];
    return product_run(matmuls->gpu, product, &product->algorithms[0], operands, stream, error);
}

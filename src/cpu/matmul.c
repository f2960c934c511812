#include "cpu/matmul.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cpu/widen.h"

/* An fp32 copy of a bf16 operand, at `offset` bytes of the scratch. */
typedef struct StandIn {
    int64_t elements, offset; /* 0 elements: the operand itself is used */
} StandIn;

struct Matmul {
    dnnl_primitive_t primitive;
    dnnl_memory_t out, a, b, addend, scratch;
    int64_t scratch_bytes; /* oneDNN's own, then the stand-ins */
    StandIn wide_out, wide_a, wide_b;
    MatmulAddend asked; /* with a stand-in for out, every addend is copied there first */
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void start_library(void) {
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        engine = NULL;
}

static dnnl_data_type_t library_type(Dtype dtype) {
    return dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static bool describe(dnnl_memory_desc_t *description, int64_t rows, int64_t columns,
                     bool transposed, Dtype dtype) {
    dnnl_dims_t dims = {rows, columns};
    return dnnl_memory_desc_init_by_tag(description, 2, dims, library_type(dtype),
                                        transposed ? dnnl_ba : dnnl_ab) == dnnl_success;
}

typedef struct Descriptions {
    dnnl_memory_desc_t out, a, b;
} Descriptions;

static bool make_attributes(dnnl_primitive_attr_t *attributes, MatmulAddend addend,
                            const dnnl_memory_desc_t *out) {
    dnnl_post_ops_t steps = NULL;
    bool done = dnnl_primitive_attr_create(attributes) == dnnl_success &&
                dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user) ==
                    dnnl_success &&
                dnnl_post_ops_create(&steps) == dnnl_success;
    if (done && addend == ADDEND_OUT) done = dnnl_post_ops_append_sum(steps, 1.0f) == dnnl_success;
    if (done && addend == ADDEND_OTHER)
        done = dnnl_post_ops_append_binary(steps, dnnl_binary_add, out) == dnnl_success;
    if (done) done = dnnl_primitive_attr_set_post_ops(*attributes, steps) == dnnl_success;
    if (steps) dnnl_post_ops_destroy(steps);
    return done;
}

static bool make_memory(dnnl_memory_t *memory, const dnnl_memory_desc_t *description) {
    return dnnl_memory_create(memory, description, engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static bool prepare(Matmul *matmul, const Descriptions *shapes, MatmulAddend addend) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t chosen = NULL;
    dnnl_matmul_desc_t wanted;
    bool done =
        make_attributes(&attributes, addend, &shapes->out) &&
        dnnl_matmul_desc_init(&wanted, &shapes->a, &shapes->b, NULL, &shapes->out) ==
            dnnl_success &&
        dnnl_primitive_desc_create(&chosen, &wanted, attributes, engine, NULL) == dnnl_success &&
        dnnl_primitive_create(&matmul->primitive, chosen) == dnnl_success;
    if (done) {
        const dnnl_memory_desc_t *scratch =
            dnnl_primitive_desc_query_md(chosen, dnnl_query_scratchpad_md, 0);
        matmul->scratch_bytes = (int64_t)dnnl_memory_desc_get_size(scratch);
        done = make_memory(&matmul->scratch, scratch) && make_memory(&matmul->out, &shapes->out) &&
               make_memory(&matmul->a, &shapes->a) && make_memory(&matmul->b, &shapes->b) &&
               (addend != ADDEND_OTHER || make_memory(&matmul->addend, &shapes->out));
    }
    if (chosen) dnnl_primitive_desc_destroy(chosen);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return done;
}

static bool make(Matmul *matmul, MatmulShape shape, MatmulTypes types, MatmulAddend addend) {
    Descriptions shapes;
    return describe(&shapes.a, shape.M, shape.K, shape.transpose_a, types.a) &&
           describe(&shapes.b, shape.K, shape.N, shape.transpose_b, types.b) &&
           describe(&shapes.out, shape.M, shape.N, false, types.out) &&
           prepare(matmul, &shapes, addend);
}

static void stand_in(Matmul *matmul, StandIn *operand, Dtype *type, int64_t elements) {
    enum { ALIGNMENT = 64 };
    if (*type != DTYPE_BF16) return;
    int64_t offset = (matmul->scratch_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *operand = (StandIn){elements, offset};
    matmul->scratch_bytes = offset + elements * dtype_size(DTYPE_F32);
    *type = DTYPE_F32;
}

/* The product in fp32 on widened operands, the result rounded once: what bf16 units compute, but for
 * the order of summation. */
static bool make_wide(Matmul *matmul, MatmulShape shape, MatmulTypes types, MatmulAddend addend) {
    MatmulTypes wide = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
    bool out = types.out == DTYPE_BF16;
    if (!make(matmul, shape, wide, out && addend == ADDEND_OTHER ? ADDEND_OUT : addend))
        return false;
    stand_in(matmul, &matmul->wide_out, &types.out, shape.M * shape.N);
    stand_in(matmul, &matmul->wide_a, &types.a, shape.M * shape.K);
    stand_in(matmul, &matmul->wide_b, &types.b, shape.K * shape.N);
    return true;
}

Matmul *matmul_create(MatmulShape shape, MatmulTypes types, MatmulAddend addend, Error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_library);
    if (!engine) {
        fail(error, "oneDNN could not start its CPU engine");
        return NULL;
    }
    Matmul *matmul = allocate(1, sizeof *matmul, error);
    if (!matmul) return NULL;
    matmul->asked = addend;
    if (!make(matmul, shape, types, addend) && !make_wide(matmul, shape, types, addend)) {
        fail(error,
             "oneDNN has no matmul of %s by %s to %s, M %lld, N %lld, K %lld, on this processor",
             dtype_name(types.a), dtype_name(types.b), dtype_name(types.out), (long long)shape.M,
             (long long)shape.N, (long long)shape.K);
        matmul_free(matmul);
        return NULL;
    }
    return matmul;
}

void matmul_free(Matmul *matmul) {
    if (!matmul) return;
    dnnl_memory_t *const memories[] = {&matmul->out, &matmul->a, &matmul->b, &matmul->addend,
                                       &matmul->scratch};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (*memories[i]) dnnl_memory_destroy(*memories[i]);
    if (matmul->primitive) dnnl_primitive_destroy(matmul->primitive);
    free(matmul);
}

int64_t matmul_scratch(const Matmul *matmul) {
    return matmul->scratch_bytes;
}

static bool point(dnnl_memory_t memory, const void *data) {
    return dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)data) == dnnl_success;
}

static const void *widened(const StandIn *operand, const void *data, void *scratch) {
    if (!operand->elements) return data;
    float *wide = (float *)((char *)scratch + operand->offset);
    widen(wide, data, operand->elements);
    return wide;
}

/* Where the product goes: the stand-in of out holds the addend by then. */
static void *widened_out(const Matmul *matmul, void *out, const void *addend, void *scratch) {
    const StandIn *operand = &matmul->wide_out;
    if (!operand->elements) return out;
    float *wide = (float *)((char *)scratch + operand->offset);
    if (matmul->asked != ADDEND_NONE)
        widen(wide, matmul->asked == ADDEND_OUT ? out : addend, operand->elements);
    return wide;
}

bool matmul_run(Matmul *matmul, void *out, const void *a, const void *b, const void *addend,
                void *scratch, Error *error) {
    void *product = widened_out(matmul, out, addend, scratch);
    bool pointed =
        point(matmul->out, product) && point(matmul->a, widened(&matmul->wide_a, a, scratch)) &&
        point(matmul->b, widened(&matmul->wide_b, b, scratch)) && point(matmul->scratch, scratch) &&
        (!matmul->addend || point(matmul->addend, addend));
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, matmul->a},
        {DNNL_ARG_WEIGHTS, matmul->b},
        {DNNL_ARG_DST, matmul->out},
        {DNNL_ARG_SCRATCHPAD, matmul->scratch},
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, matmul->addend},
    };
    int count = matmul->addend ? 5 : 4;
    if (!pointed ||
        dnnl_primitive_execute(matmul->primitive, stream, count, arguments) != dnnl_success)
        return fail(error, "oneDNN failed to run a matmul");
    dnnl_stream_wait(stream);
    if (matmul->wide_out.elements) narrow(out, product, matmul->wide_out.elements);
    return true;
}

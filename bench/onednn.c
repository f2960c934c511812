#include "onednn.h"

#ifdef HAVE_ONEDNN

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

struct OnednnMatmul {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t product;
    dnnl_memory_t out, a, b;
};

static dnnl_data_type_t library_type(Dtype dtype) {
    return dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static bool describe(dnnl_memory_desc_t *description, int64_t rows, int64_t columns,
                     dnnl_format_tag_t layout, Dtype dtype) {
    dnnl_dims_t dims = {rows, columns};
    return dnnl_memory_desc_init_by_tag(description, 2, dims, library_type(dtype), layout) ==
           dnnl_success;
}

/* Memory of that layout, every byte 0x3c: about 0.01 in bf16 and in fp32. */
static bool make_memory(dnnl_memory_t *memory, const dnnl_memory_desc_t *description,
                        dnnl_engine_t engine) {
    void *data;
    if (dnnl_memory_create(memory, description, engine, DNNL_MEMORY_ALLOCATE) != dnnl_success ||
        dnnl_memory_get_data_handle(*memory, &data) != dnnl_success)
        return false;
    memset(data, 0x3c, dnnl_memory_desc_get_size(description));
    return true;
}

static bool prepare(OnednnMatmul *matmul, MatmulShape shape, ProductTypes types, bool packed) {
    dnnl_format_tag_t plain = packed ? dnnl_format_tag_any : dnnl_ab;
    dnnl_format_tag_t transposed = packed ? dnnl_format_tag_any : dnnl_ba;
    dnnl_memory_desc_t out, a, b;
    dnnl_matmul_desc_t wanted;
    dnnl_primitive_desc_t chosen = NULL;
    bool done =
        describe(&a, shape.M, shape.K, shape.transpose_a ? transposed : plain, types.a) &&
        describe(&b, shape.K, shape.N, shape.transpose_b ? transposed : plain, types.b) &&
        describe(&out, shape.M, shape.N, dnnl_ab, types.out) &&
        dnnl_engine_create(&matmul->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&matmul->stream, matmul->engine, dnnl_stream_default_flags) ==
            dnnl_success &&
        dnnl_matmul_desc_init(&wanted, &a, &b, NULL, &out) == dnnl_success &&
        dnnl_primitive_desc_create(&chosen, &wanted, NULL, matmul->engine, NULL) == dnnl_success &&
        dnnl_primitive_create(&matmul->product, chosen) == dnnl_success &&
        make_memory(&matmul->out, dnnl_primitive_desc_query_md(chosen, dnnl_query_dst_md, 0),
                    matmul->engine) &&
        make_memory(&matmul->a, dnnl_primitive_desc_query_md(chosen, dnnl_query_src_md, 0),
                    matmul->engine) &&
        make_memory(&matmul->b, dnnl_primitive_desc_query_md(chosen, dnnl_query_weights_md, 0),
                    matmul->engine);
    if (chosen) dnnl_primitive_desc_destroy(chosen);
    return done;
}

OnednnMatmul *onednn_create(MatmulShape shape, ProductTypes types, bool packed, Error *error) {
    OnednnMatmul *matmul = allocate(1, sizeof *matmul, error);
    if (!matmul || prepare(matmul, shape, types, packed)) return matmul;
    onednn_free(matmul);
    fail(error, "oneDNN has no such matmul on this processor");
    return NULL;
}

void onednn_free(OnednnMatmul *matmul) {
    if (!matmul) return;
    if (matmul->out) dnnl_memory_destroy(matmul->out);
    if (matmul->a) dnnl_memory_destroy(matmul->a);
    if (matmul->b) dnnl_memory_destroy(matmul->b);
    if (matmul->product) dnnl_primitive_destroy(matmul->product);
    if (matmul->stream) dnnl_stream_destroy(matmul->stream);
    if (matmul->engine) dnnl_engine_destroy(matmul->engine);
    free(matmul);
}

double onednn_run(OnednnMatmul *matmul) {
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, matmul->a}, {DNNL_ARG_WEIGHTS, matmul->b}, {DNNL_ARG_DST, matmul->out}};
    double started = seconds_now();
    if (dnnl_primitive_execute(matmul->product, matmul->stream, 3, arguments) != dnnl_success ||
        dnnl_stream_wait(matmul->stream) != dnnl_success)
        return -1;
    return seconds_now() - started;
}

#else

OnednnMatmul *onednn_create(MatmulShape shape, ProductTypes types, bool packed, Error *error) {
    (void)shape, (void)types, (void)packed;
    fail(error, "built without oneDNN 2 (Debian: libdnnl-dev)");
    return NULL;
}

void onednn_free(OnednnMatmul *matmul) {
    (void)matmul;
}

double onednn_run(OnednnMatmul *matmul) {
    (void)matmul;
    return -1;
}

#endif

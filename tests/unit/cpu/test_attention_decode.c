/* Attention for generation gives what the forward gives, token by token and in pieces. */
#include "attention_case.h"

/* Decodes the case's T tokens in pieces of `piece` and compares each output row with the forward's.
 */
static void check_decode(const CpuKernels *kernels, const AttentionCase *c, int64_t piece) {
    const AttentionShape shape = c->shape;
    const int64_t D = shape.D, stride = (shape.H + 2 * shape.KV) * D, width = shape.H * D;
    const int64_t size = dtype_size(c->storage);
    AttentionValues v = attention_values(c);
    AttentionResult result = attention_run(kernels, c, &v);
    char *qkv = to_storage(v.qkv, v.qkv_count, c->storage);
    char *out = must((size_t)(shape.T * width), (size_t)size);
    void *keys = must((size_t)(shape.T * shape.KV * D), (size_t)size);
    void *values = must((size_t)(shape.T * shape.KV * D), (size_t)size);
    for (int64_t position = 0; position < shape.T; position += piece) {
        AttentionShape part = shape;
        part.T = position + piece < shape.T ? piece : shape.T - position;
        kernels->attention_decode(out + position * width * size, qkv + position * stride * size, NULL,
                                  keys, values, position, part);
    }
    const double tolerance = c->storage == DTYPE_BF16 ? 0.02 : 3e-6;
    for (int64_t i = 0; i < v.out_count; i++) {
        double actual = from_storage(out, i, c->storage),
               wanted = from_storage(result.out, i, c->storage);
        if (!(fabs(actual - wanted) <= tolerance * (1 + fabs(wanted))))
            fail_msg("%s %s D=%d window=%d: %g, not %g, at %d", kernels->isa,
                     dtype_name(c->storage), (int)D, (int)shape.window, actual, wanted, (int)i);
    }
    free(qkv), free(out), free(keys), free(values);
    attention_result_free(&result);
    attention_values_free(&v);
}

static void test_decode_is_forward(void **state) {
    (void)state;
    const int64_t dims[] = {64, 112, 10}, windows[] = {-1, 0, 40}, pieces[] = {1, 33};
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < ATTENTION_ISAS; i++) {
            const CpuKernels *kernels = attention_kernels(attention_isas[i], (Dtype)storage);
            for (int j = 0; kernels && j < 18; j++) {
                AttentionCase c = {
                    {1, 100, 4, 2, dims[j % 3], windows[j / 3 % 3], 0.1f}, (Dtype)storage, 0, 1};
                check_decode(kernels, &c, pieces[j / 9]);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_is_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Attention, forward and backward, of every instance against the definition in double precision. */
#include "attention_case.h"

#include "base/threads.h"
#include "cpu/kernels/attention_view.h"

/* The largest error of a part (columns from .. to of rows of `stride`), relative to its largest
 * value. */
static void assert_part(const char *isa, const char *name, const AttentionCase *c,
                        const void *actual, const double *expected, int64_t stride, int64_t from,
                        int64_t to) {
    const double tolerance = c->storage == DTYPE_BF16 ? 0.02 : 4e-6;
    double largest = 0, error = 0, squares = 0, error_squares = 0;
    for (int64_t n = 0; n < c->shape.B * c->shape.T; n++)
        for (int64_t i = n * stride + from; i < n * stride + to; i++) {
            double difference = fabs(from_storage(actual, i, c->storage) - expected[i]);
            if (!(difference <= error)) error = difference; /* NaN stays */
            largest = fmax(largest, fabs(expected[i]));
            squares += expected[i] * expected[i];
            error_squares += difference * difference;
        }
    if (squares == 0) largest = 4, squares = INFINITY; /* all zero: an absolute bound */
    double mean = sqrt(error_squares / squares);
    if (!(error <= tolerance * largest) || !(mean <= tolerance / 2))
        fail_msg("%s %s T=%d H=%d KV=%d D=%d window=%d documents=%d: %s: error %g of %g, mean %g",
                 isa, dtype_name(c->storage), (int)c->shape.T, (int)c->shape.H, (int)c->shape.KV,
                 (int)c->shape.D, (int)c->shape.window, (int)c->documents, name, error, largest,
                 mean);
}

static void check_instance(const char *isa, const AttentionCase *c, const AttentionValues *v) {
    const CpuKernels *kernels = attention_kernels(isa, c->storage);
    if (!kernels) return;
    const int64_t H = c->shape.H, KV = c->shape.KV, D = c->shape.D, stride = (H + 2 * KV) * D;
    AttentionResult result = attention_run(kernels, c, v);
    assert_part(isa, "out", c, result.out, v->out, H * D, 0, H * D);
    for (int64_t i = 0; i < v->lse_count; i++)
        if (!(fabs((double)result.lse[i] - v->lse[i]) <= 2e-6 * (4 + fabs(v->lse[i]))))
            fail_msg("%s: lse %g, not %g", isa, (double)result.lse[i], v->lse[i]);
    if (c->shape.T > 1) { /* with one key dq and dk are zero: nothing to be relative to */
        assert_part(isa, "dq", c, result.dqkv, v->dqkv, stride, 0, H * D);
        assert_part(isa, "dk", c, result.dqkv, v->dqkv, stride, H * D, (H + KV) * D);
    }
    assert_part(isa, "dv", c, result.dqkv, v->dqkv, stride, (H + KV) * D, stride);
    attention_result_free(&result);
}

static void check(AttentionCase c) {
    if (c.shape.scale == 0) c.shape.scale = 1 / sqrtf((float)c.shape.D);
    if (c.magnitude == 0) c.magnitude = 1;
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        c.storage = (Dtype)storage;
        AttentionValues v = attention_values(&c);
        reference(&c, &v);
        for (int i = 0; i < ATTENTION_ISAS; i++) check_instance(attention_isas[i], &c, &v);
        attention_values_free(&v);
    }
}

static void test_lengths_and_heads(void **state) {
    (void)state;
    const int64_t lengths[] = {1, 7, 129, 300}, dims[] = {64, 112, 128, 10, 2};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 5; j++)
            check((AttentionCase){.shape = {1, lengths[i], 1, 1, dims[j], -1, 0}});
    for (size_t j = 0; j < 5; j++) check((AttentionCase){.shape = {2, 129, 4, 2, dims[j], 129, 0}});
    check((AttentionCase){.shape = {1, 70, 3, 1, 256, -1, 0}});
}

static void test_windows(void **state) {
    (void)state;
    const int64_t lengths[] = {1, 7, 129, 300}, windows[] = {0, 1, 64};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 3; j++)
            check((AttentionCase){.shape = {1, lengths[i], 2, 1, 64, windows[j], 0}});
}

static void test_documents(void **state) {
    (void)state;
    const int64_t documents[] = {1, 50, 64, 150};
    for (size_t i = 0; i < 4; i++) {
        check((AttentionCase){.shape = {2, 200, 2, 2, 64, -1, 0}, .documents = documents[i]});
        check((AttentionCase){.shape = {1, 300, 2, 1, 10, 40, 0}, .documents = documents[i]});
    }
}

/* Weights that are all on one key, and scores far beyond what exp can take. */
static void test_large_scores(void **state) {
    (void)state;
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < ATTENTION_ISAS; i++) {
            AttentionCase c = {.shape = {1, 200, 2, 1, 64, 64, 1}, .magnitude = 1e4f};
            c.storage = (Dtype)storage;
            const CpuKernels *kernels = attention_kernels(attention_isas[i], c.storage);
            if (!kernels) continue;
            AttentionValues v = attention_values(&c);
            AttentionResult result = attention_run(kernels, &c, &v);
            for (int64_t j = 0; j < v.out_count; j++)
                assert_true(isfinite(from_storage(result.out, j, c.storage)));
            for (int64_t j = 0; j < v.qkv_count; j++)
                assert_true(isfinite(from_storage(result.dqkv, j, c.storage)));
            attention_result_free(&result);
            attention_values_free(&v);
        }
}

/* The reference itself: its gradients against differences of sum(out * dout). */
static void test_reference_gradient(void **state) {
    (void)state;
    AttentionCase c = {.shape = {1, 9, 4, 2, 4, 5, 0.5f}, .documents = 6, .magnitude = 1};
    AttentionValues v = attention_values(&c);
    reference(&c, &v);
    double *gradient = must((size_t)v.qkv_count, sizeof *gradient);
    memcpy(gradient, v.dqkv, (size_t)v.qkv_count * sizeof *gradient);
    for (int64_t i = 0; i < v.qkv_count; i++) {
        const double step = 1e-5, kept = v.qkv[i];
        double loss[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            v.qkv[i] = kept + (side ? step : -step);
            reference(&c, &v);
            for (int64_t j = 0; j < v.out_count; j++) loss[side] += v.out[j] * v.dout[j];
        }
        v.qkv[i] = kept;
        assert_true(fabs((loss[1] - loss[0]) / (2 * step) - gradient[i]) < 1e-7);
    }
    free(gradient);
    attention_values_free(&v);
}

/* Two key heads: one, two and three threads take different schedules of the backward. */
static void test_same_bits_with_any_threads(void **state) {
    (void)state;
    const int threads = thread_count();
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        AttentionCase c = {
            .shape = {1, 300, 4, 2, 64, 100, 0.125f}, .documents = 130, .magnitude = 1};
        c.storage = (Dtype)storage;
        AttentionValues v = attention_values(&c);
        const CpuKernels *kernels = attention_kernels("", c.storage);
        AttentionResult results[3];
        for (int i = 0; i < 3; i++) {
            thread_count_set(i + 1);
            results[i] = attention_run(kernels, &c, &v);
        }
        for (int i = 1; i < 3; i++) {
            size_t size = (size_t)dtype_size(c.storage);
            assert_memory_equal(results[0].out, results[i].out, (size_t)v.out_count * size);
            assert_memory_equal(results[0].dqkv, results[i].dqkv, (size_t)v.qkv_count * size);
            assert_memory_equal(results[0].lse, results[i].lse,
                                (size_t)v.lse_count * sizeof(float));
        }
        for (int i = 0; i < 3; i++) attention_result_free(&results[i]);
        attention_values_free(&v);
    }
    thread_count_set(threads);
}

static int64_t visited(int64_t window, const int32_t *document_start) {
    const AttentionShape shape = {1, 4096, 1, 1, 64, window, 1};
    int64_t count = 0;
    for (int64_t q = 0; q < blocks_of(shape.T); q++) {
        View view = attention_view(shape, document_start, q);
        for (int64_t k = 0; k < blocks_of(shape.T); k++) count += view_sees(&view, k);
    }
    return count;
}

/* Blocks of keys visited at T = 4096, where a block has 64 queries. */
static void test_cost_is_that_of_the_window(void **state) {
    (void)state;
    int32_t starts[4096];
    for (int i = 0; i < 4096; i++) starts[i] = i / 512 * 512;
    assert_int_equal(visited(-1, NULL), 64 * 65 / 2);
    assert_int_equal(visited(4096, NULL), 64 * 65 / 2);
    assert_int_equal(visited(0, NULL), 64);
    assert_int_equal(visited(64, NULL), 64 + 63);
    assert_int_equal(visited(-1, starts), 8 * (8 * 9 / 2));
}

/* Quarters of blocks that are computed, of those of a block of queries. */
static int64_t quarters(const View *view, int64_t key_blocks) {
    int64_t count = 0;
    for (int64_t k = 0; k < key_blocks; k++) {
        Part parts[2];
        for (int i = view_parts(view, k, parts) - 1; i >= 0; i--)
            count += parts[i].keys * parts[i].queries / (HALF * HALF);
    }
    return count;
}

/* Each query sees all its keys within the parts, and quarters that nobody sees are left out. */
static void test_parts_cover_what_is_visible(void **state) {
    (void)state;
    const int64_t windows[] = {-1, 0, 20, 64, 100};
    for (size_t w = 0; w < 5; w++)
        for (int documents = 0; documents < 2; documents++) {
            const AttentionShape shape = {1, 300, 1, 1, 64, windows[w], 1};
            int32_t starts[300];
            for (int i = 0; i < 300; i++) starts[i] = i / 90 * 90;
            for (int64_t q = 0; q < blocks_of(shape.T); q++) {
                const View view = attention_view(shape, documents ? starts : NULL, q);
                bool seen[2][10] = {{false}};
                int64_t expected = 0;
                for (int64_t i = 0; i < BLOCK && q * BLOCK + i < shape.T; i++)
                    for (int64_t key = view.lowest[i]; key <= q * BLOCK + i; key++)
                        seen[i / HALF][key / HALF] = true;
                for (int i = 0; i < 20; i++) expected += seen[i / 10][i % 10];
                assert_int_equal(quarters(&view, blocks_of(shape.T)), expected);
                for (int64_t k = 0; k < blocks_of(shape.T); k++) {
                    Part parts[2];
                    for (int i = view_parts(&view, k, parts) - 1; i >= 0; i--)
                        assert_true(seen[parts[i].query / HALF][k * 2 + parts[i].key / HALF]);
                }
            }
        }
}

/* Had a kernel visited keys beyond the window, their NaN would show. */
static void test_nothing_beyond_the_window_is_touched(void **state) {
    (void)state;
    AttentionCase c = {.shape = {1, 512, 1, 1, 64, 64, 0.125f}, .magnitude = 1};
    AttentionValues v = attention_values(&c);
    const int64_t half = v.qkv_count / 2, untouched = 5 * 64;
    for (int64_t i = 0; i < half; i++) v.qkv[i] = NAN;
    for (int i = 0; i < ATTENTION_ISAS; i++) {
        const CpuKernels *kernels = attention_kernels(attention_isas[i], DTYPE_F32);
        if (!kernels) continue;
        AttentionResult result = attention_run(kernels, &c, &v);
        for (int64_t j = untouched * 64; j < v.out_count; j++)
            assert_true(isfinite(((float *)result.out)[j]));
        for (int64_t j = untouched * 3 * 64; j < v.qkv_count; j++)
            assert_true(isfinite(((float *)result.dqkv)[j]));
        attention_result_free(&result);
    }
    attention_values_free(&v);
}

/* The bits of a token's output depend on what it sees only, not on the queries computed with it. */
static void test_later_tokens_change_no_bit(void **state) {
    (void)state;
    enum { T = 150, KEPT = 90, D = 32 };
    AttentionCase c = {.shape = {1, T, 1, 1, D, -1, 0.2f}, .magnitude = 1};
    for (int i = 0; i < ATTENTION_ISAS; i++) {
        const CpuKernels *kernels = attention_kernels(attention_isas[i], DTYPE_F32);
        if (!kernels) continue;
        AttentionValues v = attention_values(&c);
        AttentionResult before = attention_run(kernels, &c, &v);
        for (int64_t j = v.qkv_count / T * KEPT; j < v.qkv_count; j++) v.qkv[j] *= 40;
        AttentionResult after = attention_run(kernels, &c, &v);
        assert_memory_equal(before.out, after.out, KEPT * D * sizeof(float));
        assert_memory_not_equal(before.out, after.out, T * D * sizeof(float));
        attention_result_free(&before);
        attention_result_free(&after);
        attention_values_free(&v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths_and_heads),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_reference_gradient),
        cmocka_unit_test(test_same_bits_with_any_threads),
        cmocka_unit_test(test_cost_is_that_of_the_window),
        cmocka_unit_test(test_parts_cover_what_is_visible),
        cmocka_unit_test(test_nothing_beyond_the_window_is_touched),
        cmocka_unit_test(test_later_tokens_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

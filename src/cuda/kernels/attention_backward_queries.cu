/* Attention, backward: the gradient of queries. A block owns queries of one head and streams past them the
 * keys and values that any of them sees. */
#include "attention_backward.cuh"

template <int PADDED>
DEVICE void backward_queries(Bf16 *shared, const Sequence &sequence, int head, int first) {
    constexpr int STREAMED = BACKWARD_STREAMED;
    const View &view = sequence.view;
    const int row = threadIdx.x / 32 * 16, query = first + row; /* of this warp */
    const int begin = lowest_key(view, first) / STREAMED * STREAMED;
    const int tiles = (min(first + PADDED, view.T) - 1 - begin) / STREAMED + 1;
    const int key_head = head / (sequence.H / sequence.KV);
    const float2 *statistics =
        sequence.statistics + (int64_t)head * sequence.aligned + query + threadIdx.x % 32 / 4;
    const float2 rows[2] = {statistics[0], statistics[8]};
    Bf16 *q = shared, *dout = q + PADDED * PADDED;
    float dq[PADDED / 8][4] = {};

    queries_load<PADDED, PADDED>(q, dout, sequence, head, first);
    const auto load = [&](int i, Bf16 *keys, Bf16 *values) {
        keys_load<PADDED, STREAMED>(keys, values, sequence, key_head, begin + i * STREAMED);
    };
    const auto use = [&](int i, const Bf16 *keys, const Bf16 *values) {
        const int key = begin + i * STREAMED;
        if (!sees_any(view, query, 16, key, STREAMED)) return;
        Scores scores, dscores;
        scores_compute<PADDED>(scores, q, row, keys);
        scores_compute<PADDED>(dscores, dout, row, values);
        if (!sees_all(view, query, 16, key, STREAMED)) scores_mask<false>(scores, view, query, key);
#pragma unroll
        for (int n = 0; n < STREAMED / 8; n++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                weigh(scores[n][c], dscores[n][c], rows[c / 2], sequence.scale * LOG2_E);
        gradient_add<PADDED>(dq, dscores, keys);
    };
    stream<PADDED>(dout + PADDED * PADDED, tiles, load, use);
    gradient_store<PADDED>(sequence, head, first, q, row, dq, sequence.scale);
}

/* dqkv, queries; dout[N,H*D], qkv[N,(H+2KV)*D], statistics[B,H,T aligned], document_start[N] or null. A
 * grid of H * B by tiles of queries, the last of which see most keys and come first. */
KERNEL(attention_backward_queries_64_bf16, BACKWARD_THREADS(64))
(Bf16 *dqkv, const Bf16 *dout, const Bf16 *qkv, const float2 *statistics,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    const Sequence sequence = sequence_of(blockIdx.x / H, dqkv, dout, qkv, statistics,
                                          document_start, T, H, KV, D, window, scale);
    backward_queries<64>(shared, sequence, blockIdx.x % H, (gridDim.y - 1 - blockIdx.y) * 64);
}
EXPORT_KERNEL(attention_backward_queries_64_bf16)

KERNEL(attention_backward_queries_128_bf16, BACKWARD_THREADS(128))
(Bf16 *dqkv, const Bf16 *dout, const Bf16 *qkv, const float2 *statistics,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    const Sequence sequence = sequence_of(blockIdx.x / H, dqkv, dout, qkv, statistics,
                                          document_start, T, H, KV, D, window, scale);
    backward_queries<128>(shared, sequence, blockIdx.x % H, (gridDim.y - 1 - blockIdx.y) * 128);
}
EXPORT_KERNEL(attention_backward_queries_128_bf16)

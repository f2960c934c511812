/* Attention, backward: the gradients of keys and values. A block owns keys of one key head and streams past
 * them, of each query head of its group, the queries that see any of them. */
#include "attention_backward.cuh"

/* The last query that sees key s. */
DEVICE int last_query(const View &view, int s) {
    int low = s, high = min(view.T - 1, s + view.window);
    while (view.document_start && low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (view.document_start[middle] <= s)
            low = middle;
        else
            high = middle - 1;
    }
    return high;
}

/* Keys are rows, queries columns. statistics: of the first column's query. */
DEVICE void weigh_columns(Scores &scores, Scores &dscores, const float2 *statistics, float scale) {
#pragma unroll
    for (int n = 0; n < BACKWARD_STREAMED / 8; n++) {
        const float4 pair = *(const float4 *)(statistics + n * 8 + threadIdx.x % 4 * 2);
        const float2 columns[2] = {{pair.x, pair.y}, {pair.z, pair.w}};
#pragma unroll
        for (int i = 0; i < 4; i++) weigh(scores[n][i], dscores[n][i], columns[i % 2], scale);
    }
}

template <int PADDED>
DEVICE void backward_keys(Bf16 *shared, const Sequence &sequence, int key_head, int first) {
    constexpr int STREAMED = BACKWARD_STREAMED;
    const View &view = sequence.view;
    const int row = threadIdx.x / 32 * 16, key = first + row; /* of this warp */
    const int begin = first / STREAMED * STREAMED;
    const int tiles = (last_query(view, min(first + PADDED, view.T) - 1) - begin) / STREAMED + 1;
    const int group = sequence.H / sequence.KV;
    Bf16 *keys = shared, *values = keys + PADDED * PADDED;
    float dk[PADDED / 8][4] = {}, dv[PADDED / 8][4] = {};

    keys_load<PADDED, PADDED>(keys, values, sequence, key_head, first);
    const auto load = [&](int i, Bf16 *q, Bf16 *dout) {
        queries_load<PADDED, STREAMED>(q, dout, sequence, key_head * group + i / tiles,
                                       begin + i % tiles * STREAMED);
    };
    const auto use = [&](int i, const Bf16 *q, const Bf16 *dout) {
        const int head = key_head * group + i / tiles, query = begin + i % tiles * STREAMED;
        if (!sees_any(view, query, STREAMED, key, 16)) return;
        Scores scores, dscores;
        scores_compute<PADDED>(scores, keys, row, q);
        scores_compute<PADDED>(dscores, values, row, dout);
        if (!sees_all(view, query, STREAMED, key, 16)) scores_mask<true>(scores, view, key, query);
        weigh_columns(scores, dscores,
                      sequence.statistics + (int64_t)head * sequence.aligned + query,
                      sequence.scale * LOG2_E);
        gradient_add<PADDED>(dv, scores, dout);
        gradient_add<PADDED>(dk, dscores, q);
    };
    stream<PADDED>(values + PADDED * PADDED, group * tiles, load, use);

    const int head = sequence.H + key_head;
    gradient_store<PADDED>(sequence, head, first, keys, row, dk, sequence.scale);
    gradient_store<PADDED>(sequence, head + sequence.KV, first, values, row, dv, 1);
}

/* dqkv, keys and values; dout[N,H*D], qkv[N,(H+2KV)*D], statistics[B,H,T aligned], document_start[N] or
 * null. A grid of KV * B by tiles of keys, the first of which most queries see. */
KERNEL(attention_backward_keys_64_bf16, BACKWARD_THREADS(64))
(Bf16 *dqkv, const Bf16 *dout, const Bf16 *qkv, const float2 *statistics,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    const Sequence sequence = sequence_of(blockIdx.x / KV, dqkv, dout, qkv, statistics,
                                          document_start, T, H, KV, D, window, scale);
    backward_keys<64>(shared, sequence, blockIdx.x % KV, blockIdx.y * 64);
}
EXPORT_KERNEL(attention_backward_keys_64_bf16)

KERNEL(attention_backward_keys_128_bf16, BACKWARD_THREADS(128))
(Bf16 *dqkv, const Bf16 *dout, const Bf16 *qkv, const float2 *statistics,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    const Sequence sequence = sequence_of(blockIdx.x / KV, dqkv, dout, qkv, statistics,
                                          document_start, T, H, KV, D, window, scale);
    backward_keys<128>(shared, sequence, blockIdx.x % KV, blockIdx.y * 128);
}
EXPORT_KERNEL(attention_backward_keys_128_bf16)

/* Queues attention. In bf16 its kernels exist for tiles 64 and 128 columns wide, which D is padded to. */
#include "base/integer.h"
#include "cuda/attention_backward.h"
#include "cuda/attention_forward.h"
#include "cuda/executor.h"

enum { WARP = 32 };

/* Keys a query sees before its own; T where that is no limit. */
static int kernel_window(const AttentionShape *shape) {
    return (int)(shape->window < 0 || shape->window > shape->T ? shape->T : shape->window);
}

bool launch_attention_forward(Call *call) {
    const AttentionShape *shape = &call->operation->attention;
    int T = (int)shape->T, H = (int)shape->H, KV = (int)shape->KV, D = (int)shape->D;
    int window = kernel_window(shape);
    float scale = shape->scale;
    void *arguments[] = {&call->out[0], &call->out[1], &call->in[0], &call->in[1], &T, &H, &KV, &D,
                         &window,       &scale};
    if (call->storage == DTYPE_F32)
        return launch(call, "attention_forward", (Grid){T, H, shape->B}, WARP, 0, arguments);
    const Grid grid = {shape->B * H, (T + FORWARD_TILE - 1) / FORWARD_TILE, 1};
    if (D <= 64)
        return launch(call, "attention_forward_64", grid, FORWARD_THREADS, FORWARD_SHARED(64),
                      arguments);
    return launch(call, "attention_forward_128", grid, FORWARD_THREADS, FORWARD_SHARED(128),
                  arguments);
}

/* One block for each token and query head, whatever the position. */
bool launch_attention_decode(Call *call) {
    const AttentionShape *shape = &call->operation->attention;
    int H = (int)shape->H, KV = (int)shape->KV, D = (int)shape->D;
    int64_t window = shape->window < 0 ? INT64_MAX : shape->window;
    float scale = shape->scale;
    void *arguments[] = {&call->out[0],
                         &call->out[1],
                         &call->out[2],
                         &call->in[0],
                         &call->in[1],
                         &call->scalars,
                         &H,
                         &KV,
                         &D,
                         &window,
                         &scale};
    return launch(call, "attention_decode", (Grid){shape->T, H, 1}, DECODE_THREADS, 0, arguments);
}

bool launch_attention_backward(Call *call) {
    const AttentionShape *shape = &call->operation->attention;
    int T = (int)shape->T, H = (int)shape->H, KV = (int)shape->KV, D = (int)shape->D;
    int window = kernel_window(shape);
    float scale = shape->scale;
    if (call->storage == DTYPE_F32) {
        void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &call->in[2],
                             &call->in[3],  &call->in[4], &T,           &H,
                             &KV,           &D,           &window,      &scale};
        return launch(call, "attention_backward_queries", (Grid){T, H, shape->B}, WARP, 0,
                      arguments) &&
               launch(call, "attention_backward_keys", (Grid){T, KV, shape->B}, WARP, 0, arguments);
    }
    const bool narrow = D <= 64;
    const int padded = narrow ? 64 : 128;
    const int64_t shared = BACKWARD_SHARED(padded), tiles = divide_up(T, padded);
    const unsigned threads = BACKWARD_THREADS((unsigned)padded);
    void *delta[] = {&call->workspace, &call->in[0], &call->in[1], &call->in[2], &T, &H, &D};
    void *gradients[] = {
        &call->out[0], &call->in[0], &call->in[3], &call->workspace, &call->in[4], &T, &H, &KV, &D,
        &window,       &scale};
    return launch(call, "attention_backward_delta",
                  (Grid){shape->B * H, BACKWARD_ALIGNED(T) / BACKWARD_DELTA_QUERIES, 1},
                  BACKWARD_DELTA_THREADS, 0, delta) &&
           launch(call, narrow ? "attention_backward_keys_64" : "attention_backward_keys_128",
                  (Grid){shape->B * KV, tiles, 1}, threads, shared, gradients) &&
           launch(call, narrow ? "attention_backward_queries_64" : "attention_backward_queries_128",
                  (Grid){shape->B * H, tiles, 1}, threads, shared, gradients);
}

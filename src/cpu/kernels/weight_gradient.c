/* out[M,N] += A'[M,K] B[K,N], with A stored [K,M]: the gradient of a weight, summed over tokens.
 *
 * Both operands are summed down their columns, so both are packed: a chunk of tokens of B by all
 * threads together, then by each thread a block of A's columns, through which all panels of B pass.
 * The output, mostly too large for any cache, is touched once a chunk and asked for before the sums
 * that are added to it. */
#include <omp.h>

#include "base/threads.h"
#include "cpu/kernels/panel.h"

enum {
    CHUNK = 2048,     /* tokens at a time */
    BLOCK = 288,      /* columns of A in a thread's block */
    SLICE = 32,       /* tokens of B that a thread packs at a time */
    TOKENS_AHEAD = 32 /* tokens; A's columns lie too far apart for the processor to foresee */
};
_Static_assert(BLOCK % ROWS == 0, "a block holds whole tiles");

typedef struct Cut {
    int64_t chunk, steps; /* tokens, units */
    int64_t panels;       /* of N */
    int64_t tiles;        /* of M */
    int64_t blocks;       /* block i has tiles i * tiles / blocks .. */
} Cut;

static Cut cut(MatmulShape shape) {
    const int64_t threads = thread_count(), tiles = divide_up(shape.M, ROWS);
    const int64_t blocks = divide_up(divide_up(shape.M, BLOCK), threads) * threads;
    const int64_t chunk = smaller(shape.K, CHUNK);
    return (Cut){.chunk = chunk,
                 .steps = divide_up(chunk, UNIT),
                 .panels = divide_up(shape.N, PANEL),
                 .tiles = tiles,
                 .blocks = smaller(blocks, tiles)};
}

static int64_t panel_bytes(const Cut *cut) {
    return cut->panels * cut->steps * PANEL * (int64_t)sizeof(Unit);
}

/* Units from a packed tile to the next: a line more than it holds, as the same place in all tiles is
 * written in turn and must not fall into the same set of the first-level cache. */
static int64_t tile_stride(int64_t steps) {
    return steps * ROWS + 64 / (int64_t)sizeof(Unit);
}

/* Whole vectors of columns are packed, which may be more than the last tile has. */
static int64_t block_bytes(const Cut *cut) {
    const int64_t columns = divide_up(divide_up(cut->tiles, cut->blocks) * ROWS, W) * W;
    return columns / ROWS * tile_stride(cut->steps) * (int64_t)sizeof(Unit);
}

/* W units of columns c .. to [columns / ROWS][steps][ROWS], at step k. */
INLINE void store_left(Unit *to, int64_t steps, int64_t k, int64_t c, vunit units) {
    enum { PIECE = (int)W < (int)ROWS ? (int)W : (int)ROWS };
    Unit lanes[W];
    memcpy(lanes, &units, sizeof units);
    for (int i = 0; i < W; i += PIECE)
        memcpy(to + (c + i) / ROWS * tile_stride(steps) + k * ROWS + (c + i) % ROWS, lanes + i,
               PIECE * sizeof *to);
}

/* x[tokens][stride], the first `columns` of each row, to [columns / ROWS][steps][ROWS] units. */
static void pack_left(Unit *to, const Storage *x, int64_t stride, int64_t columns, int64_t tokens) {
    const int64_t steps = divide_up(tokens, UNIT);
    for (int64_t k = 0; k < steps; k++, x += UNIT * stride)
        for (int64_t c = 0; c < columns; c += W) {
            for (int u = 0; u < UNIT; u++) __builtin_prefetch(x + (TOKENS_AHEAD + u) * stride + c);
            store_left(to, steps, k, c,
                       load_units_down(x + c, stride, columns - c, tokens - k * UNIT));
        }
}

typedef struct Arguments {
    float *out;
    const Storage *a, *b;
    Unit *panels; /* the chunk of B */
    MatmulShape shape;
    Cut cut;
} Arguments;

/* Tokens from .. of a chunk that begins at `start`. */
static void pack_slice(const Arguments *args, int64_t start, int64_t from, int64_t tokens) {
    const int64_t N = args->shape.N, size = divide_up(tokens, UNIT) * PANEL;
    pack_panels_down(args->panels + from / UNIT * PANEL, size, args->b + (start + from) * N, N, N,
                     smaller(SLICE, tokens - from));
}

/* The tile of rows m .. and panel p, added to the output. */
static void add_tile(const Arguments *args, const Unit *left, int64_t m, int64_t p, int64_t steps) {
    const int64_t N = args->shape.N, columns = smaller(PANEL, N - p * PANEL);
    const int64_t rows = smaller(ROWS, args->shape.M - m);
    float *out = args->out + m * N + p * PANEL;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += W) __builtin_prefetch(out + i * N + j, 1);
    Left units = {.step = ROWS};
    for (int i = 0; i < ROWS; i++) units.row[i] = left + i;
    _Alignas(64) float sums[ROWS * PANEL];
    tile_product(sums, NULL, PANEL, &units, args->panels + p * steps * PANEL, columns, steps);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += W)
            row_store_f32(out + i * N, j, columns,
                          row_load_f32(out + i * N, j, columns) + vload_f32(sums + i * PANEL + j));
}

/* Block number `block` of the output's rows, for the tokens from `start` on. */
static void add_block(const Arguments *args, Unit *left, int64_t block, int64_t start,
                      int64_t tokens) {
    const Cut *cut = &args->cut;
    const int64_t M = args->shape.M, steps = divide_up(tokens, UNIT);
    const int64_t from = block * cut->tiles / cut->blocks * ROWS;
    const int64_t to = smaller(M, (block + 1) * cut->tiles / cut->blocks * ROWS);
    pack_left(left, args->a + start * M + from, M, to - from, tokens);
    for (int64_t p = 0; p < cut->panels; p++)
        for (int64_t m = from; m < to; m += ROWS)
            add_tile(args, left + (m - from) / ROWS * tile_stride(steps), m, p, steps);
}

void KERNEL(weight_gradient)(float *out, const void *a, const void *b, void *workspace,
                             MatmulShape shape) {
    const Arguments args = {out, a, b, workspace, shape, cut(shape)};
    char *blocks = (char *)workspace + panel_bytes(&args.cut);
#pragma omp parallel
    for (int64_t start = 0; start < shape.K; start += CHUNK) {
        const int64_t tokens = smaller(CHUNK, shape.K - start);
        Unit *left = (Unit *)(blocks + omp_get_thread_num() * block_bytes(&args.cut));
#pragma omp for schedule(static)
        for (int64_t from = 0; from < tokens; from += SLICE) pack_slice(&args, start, from, tokens);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < args.cut.blocks; block++)
            add_block(&args, left, block, start, tokens);
    }
}

size_t KERNEL(weight_gradient_workspace)(MatmulShape shape) {
    const Cut sizes = cut(shape);
    return (size_t)(panel_bytes(&sizes) + thread_count() * block_bytes(&sizes));
}

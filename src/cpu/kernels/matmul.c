/* out[M,N] = A[M,K] B[K,N] + addend: the forward of a linear layer and its input gradient.
 *
 * A task is a group of panels of B times a block of rows of A. It packs its panels, which then stay
 * in the second-level cache, and takes ROWS rows of A at a time through all of them; those rows are
 * read where they lie. So packing costs 1 / BLOCK of the product, and A is read once a group. Long
 * sums go in chunks of K with the sums between them in scratch. */
#include <omp.h>

#include "base/threads.h"
#include "cpu/kernels/panel.h"

enum {
    BLOCK = 2048,            /* rows of A in a task */
    GROUP_BYTES = 576 << 10, /* of a group's panels */
    CHUNK = 2048             /* numbers of K at a time, at most one and a half of it */
};

/* Whether units of A can be read where they lie. */
static bool reads_in_place(int64_t K) {
    return (DOT_BF16 || !KERNEL_BF16) && K % UNIT == 0;
}

/* How a product is cut. Only `chunk` reaches the bits, and it does not depend on the threads. */
typedef struct Cut {
    int64_t chunk, chunks;  /* of K */
    int64_t panels, groups; /* of N; group g has panels g * panels / groups .. */
    int64_t group_panels;   /* in the largest group */
    int64_t blocks, rows;   /* of M; rows of a block */
} Cut;

static Cut cut(MatmulShape shape) {
    Cut cut;
    const int64_t threads = thread_count();
    cut.chunks = divide_up(shape.K, CHUNK + CHUNK / 2);
    cut.chunk = divide_up(divide_up(shape.K, cut.chunks), ALONG) * ALONG;
    cut.chunks = divide_up(shape.K, cut.chunk);
    cut.panels = divide_up(shape.N, PANEL);
    const int64_t fit = GROUP_BYTES / (cut.chunk / UNIT * PANEL * (int64_t)sizeof(Unit));
    cut.groups = divide_up(cut.panels, fit > 1 ? fit : 1);
    cut.groups = least(divide_up(cut.groups, threads) * threads, cut.panels);
    cut.group_panels = divide_up(cut.panels, cut.groups);
    cut.blocks = divide_up(shape.M, BLOCK);
    if (cut.groups < threads) /* few columns: share the rows out as well */
        cut.blocks =
            least(divide_up(shape.M, ROWS), cut.blocks * divide_up(2 * threads, cut.groups));
    cut.rows = divide_up(divide_up(shape.M, cut.blocks), ROWS) * ROWS;
    cut.blocks = divide_up(shape.M, cut.rows);
    return cut;
}

/* What a thread has in the workspace. */
typedef struct Place {
    Unit *panels; /* [group_panels][chunk / UNIT][PANEL] */
    Unit *rows;   /* [ROWS][chunk / UNIT], where A is not read in place */
    float *sums;  /* [rows][group_panels * PANEL], where there are several chunks */
} Place;

static int64_t panels_units(const Cut *cut) {
    return cut->group_panels * PANEL * cut->chunk / UNIT;
}

static int64_t rows_units(const Cut *cut, int64_t K) {
    return reads_in_place(K) ? 0 : ROWS * cut->chunk / UNIT;
}

static int64_t place_bytes(const Cut *cut, int64_t K) {
    const int64_t sums = cut->chunks > 1 ? cut->rows * cut->group_panels * PANEL : 0;
    return (panels_units(cut) + rows_units(cut, K) + sums) * (int64_t)sizeof(Unit);
}

static Place place_at(void *workspace, int64_t thread, const Cut *cut, int64_t K) {
    Unit *panels = (Unit *)((char *)workspace + thread * place_bytes(cut, K));
    Unit *rows = panels + panels_units(cut);
    return (Place){panels, rows, (float *)(rows + rows_units(cut, K))};
}

/* A tile of the output: where its sums come from and go to. */
typedef struct Tile {
    Left left;
    const Unit *panel;
    int64_t steps, rows, columns; /* what of the tile lies inside the output */
    char *out;
    const char *addend;
    int64_t stride; /* of out and addend, in elements */
    bool out_f32;
    float *sums; /* of the chunks before, and for those to come; stride sums_stride */
    int64_t sums_stride;
    bool first, last; /* chunk */
} Tile;

/* Vector j of row i. */
INLINE void tile_store(const Tile *tile, int i, int j, vfloat sum) {
    const int64_t at = i * tile->stride + j * W, count = tile->columns - j * W;
    Storage *out = (Storage *)(void *)tile->out + at;
    const Storage *addend = (const Storage *)(const void *)tile->addend + at;
    if (tile->addend) sum += count < W ? vload_part(addend, count) : vload(addend);
    if (count < W)
        vstore_part(out, sum, count);
    else
        vstore(out, sum);
}

/* The same where the output is fp32 and storage is not: a single row of logits, seldom. */
INLINE void tile_store_f32(const Tile *tile, int i, int j, vfloat sum) {
    const int64_t at = i * tile->stride + j * W, count = least(W, tile->columns - j * W);
    if (tile->addend) sum += vload_f32_part((const float *)(const void *)tile->addend + at, count);
    vstore_f32_part((float *)(void *)tile->out + at, sum, count);
}

INLINE void tile_run(const Tile *tile, int vectors) {
    vfloat sums[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++)
            sums[i][j] =
                tile->first ? splat(0) : vload_f32(tile->sums + i * tile->sums_stride + j * W);
    tile_add(sums, &tile->left, tile->panel, vectors, tile->steps);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++)
            if (!tile->last)
                vstore_f32(tile->sums + i * tile->sums_stride + j * W, sums[i][j]);
            else if (i < tile->rows && tile->out_f32)
                tile_store_f32(tile, i, j, sums[i][j]);
            else if (i < tile->rows)
                tile_store(tile, i, j, sums[i][j]);
}

static void tile_any(const Tile *tile) {
    const int64_t vectors = divide_up(tile->columns, W);
    if (vectors == 1) tile_run(tile, 1);
    if (vectors == 2) tile_run(tile, 2);
    if (vectors == 3) tile_run(tile, 3);
}

typedef struct Arguments {
    char *out;
    const Storage *a, *b;
    const char *addend;
    MatmulShape shape;
    bool out_f32;
    Cut cut;
} Arguments;

/* The first and the last + 1 panel of a group, and K's chunk number c. */
typedef struct Part {
    int64_t first_panel, last_panel, k, length;
    bool first, last;
} Part;

static void pack_group(const Place *place, const Arguments *args, const Part *part) {
    const MatmulShape *shape = &args->shape;
    const int64_t size = divide_up(part->length, UNIT) * PANEL;
    for (int64_t p = part->first_panel; p < part->last_panel; p++) {
        Unit *panel = place->panels + (p - part->first_panel) * size;
        const int64_t n = p * PANEL, columns = least(PANEL, shape->N - n);
        if (shape->transpose_b)
            pack_panel_along(panel, args->b + n * shape->K + part->k, shape->K, columns,
                             part->length);
        else
            pack_panel_down(panel, args->b + part->k * shape->N + n, shape->N, columns,
                            part->length);
    }
}

/* Rows m .. of A; those behind the last one repeat it. */
static Left left_rows(const Place *place, const Arguments *args, const Part *part, int64_t m) {
    const int64_t K = args->shape.K, steps = divide_up(part->length, UNIT);
    Left left = {.step = 1};
    for (int i = 0; i < ROWS; i++) {
        const Storage *row = args->a + least(m + i, args->shape.M - 1) * K + part->k;
        left.row[i] = (const Unit *)(const void *)row;
        if (reads_in_place(K)) continue;
        Unit *packed = place->rows + i * args->cut.chunk / UNIT;
        for (int64_t k = 0; k < steps; k += W) {
            const vunit units = load_units_along(row + k * UNIT, part->length - k * UNIT);
            memcpy(packed + k, &units, sizeof units);
        }
        left.row[i] = packed;
    }
    return left;
}

static void multiply_part(const Place *place, const Arguments *args, const Part *part, int64_t m,
                          int64_t end) {
    const int64_t N = args->shape.N, steps = divide_up(part->length, UNIT), start = m;
    const int64_t size = args->out_f32 ? (int64_t)sizeof(float) : (int64_t)sizeof(Storage);
    Tile tile = {.steps = steps,
                 .stride = N,
                 .out_f32 = args->out_f32,
                 .sums_stride = args->cut.group_panels * PANEL,
                 .first = part->first,
                 .last = part->last};
    for (; m < end; m += ROWS) {
        tile.left = left_rows(place, args, part, m);
        tile.rows = end - m;
        for (int64_t p = part->first_panel; p < part->last_panel; p++) {
            const int64_t n = p * PANEL, in_group = p - part->first_panel;
            tile.columns = least(PANEL, N - n);
            tile.panel = place->panels + in_group * steps * PANEL;
            tile.out = args->out + (m * N + n) * size;
            tile.addend = args->addend ? args->addend + (m * N + n) * size : NULL;
            if (args->cut.chunks > 1)
                tile.sums = place->sums + (m - start) * tile.sums_stride + in_group * PANEL;
            tile_any(&tile);
        }
    }
}

static void run_task(const Place *place, const Arguments *args, int64_t group, int64_t block) {
    const Cut *cut = &args->cut;
    const int64_t m = block * cut->rows, end = least(args->shape.M, m + cut->rows);
    for (int64_t c = 0; c < cut->chunks; c++) {
        const Part part = {.first_panel = group * cut->panels / cut->groups,
                           .last_panel = (group + 1) * cut->panels / cut->groups,
                           .k = c * cut->chunk,
                           .length = least(cut->chunk, args->shape.K - c * cut->chunk),
                           .first = c == 0,
                           .last = c == cut->chunks - 1};
        pack_group(place, args, &part);
        multiply_part(place, args, &part, m, end);
    }
}

void KERNEL(matmul)(void *out, const void *a, const void *b, const void *addend, void *workspace,
                    MatmulShape shape, bool out_f32) {
    const Arguments args = {out, a, b, addend, shape, out_f32, cut(shape)};
    const Cut *cut = &args.cut;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < cut->groups * cut->blocks; task++) {
        const Place place = place_at(workspace, omp_get_thread_num(), cut, shape.K);
        run_task(&place, &args, task / cut->blocks, task % cut->blocks);
    }
}

size_t KERNEL(matmul_workspace)(MatmulShape shape) {
    const Cut sizes = cut(shape);
    return (size_t)(thread_count() * place_bytes(&sizes, shape.K));
}

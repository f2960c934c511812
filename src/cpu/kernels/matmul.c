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
    CHUNK = 1024             /* numbers of K at a time, at most one and a half of it */
};

/* Whether units of A can be read where they lie. */
static bool reads_in_place(int64_t K) {
    return (DOT_BF16 || !KERNEL_BF16) && K % UNIT == 0;
}

/* How a product is cut. None of it reaches the bits: sums go on from scratch, in the order of K. */
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
    cut.blocks = divide_up(shape.M, BLOCK);
    if (cut.groups * cut.blocks % threads) /* shares that do not come out even */
        cut.groups = smaller(divide_up(cut.groups, threads) * threads, cut.panels);
    if (cut.groups * cut.blocks < threads)
        cut.blocks = smaller(divide_up(shape.M, ROWS), divide_up(2 * threads, cut.groups));
    cut.group_panels = divide_up(cut.panels, cut.groups);
    cut.rows = divide_up(divide_up(shape.M, cut.blocks), ROWS) * ROWS;
    cut.blocks = divide_up(shape.M, cut.rows);
    return cut;
}

/* What a thread has in the workspace. */
typedef struct Place {
    Unit *panels; /* [group_panels][chunk / UNIT][PANEL] */
    Unit *rows;   /* [ROWS][chunk / UNIT], where A is not read in place */
    float *sums;  /* [rows / ROWS][group_panels][ROWS][PANEL], where there are several chunks */
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

typedef struct Arguments {
    void *out;
    const Storage *a, *b;
    const void *addend;
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
    const int64_t size = divide_up(part->length, UNIT) * PANEL, n = part->first_panel * PANEL;
    const int64_t columns = smaller(part->last_panel * PANEL, shape->N) - n;
    if (!shape->transpose_b) {
        pack_panels_down(place->panels, size, args->b + part->k * shape->N + n, shape->N, columns,
                         part->length);
        return;
    }
    for (int64_t at = 0; at < columns; at += PANEL)
        pack_panel_along(place->panels + at / PANEL * size, args->b + (n + at) * shape->K + part->k,
                         shape->K, smaller(PANEL, columns - at), part->length);
}

/* Rows m .. of A; those behind the last one repeat it. */
static Left left_rows(const Place *place, const Arguments *args, const Part *part, int64_t m) {
    const int64_t K = args->shape.K, steps = divide_up(part->length, UNIT);
    Left left = {.step = 1};
    for (int i = 0; i < ROWS; i++) {
        const Storage *row = args->a + smaller(m + i, args->shape.M - 1) * K + part->k;
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

/* out[rows][columns] from row m, column n on = sums[ROWS][PANEL] + addend. */
static void store_tile(const Arguments *args, int64_t m, int64_t n, const float *sums, int64_t rows,
                       int64_t columns) {
    for (int64_t i = 0; i < rows; i++, sums += PANEL) {
        const int64_t at = (m + i) * args->shape.N + n;
        Storage *out = (Storage *)args->out + at;
        const Storage *addend = args->addend ? (const Storage *)args->addend + at : NULL;
        for (int64_t j = 0; j < columns; j += W) {
            vfloat sum = vload_f32(sums + j);
            if (addend) sum += row_load(addend, j, columns);
            row_store(out, j, columns, sum);
        }
    }
}

/* The same where out is fp32 and storage is not: logits of a single row, seldom. */
static void store_tile_f32(const Arguments *args, int64_t m, int64_t n, const float *sums,
                           int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = (m + i) * args->shape.N + n + j;
            const float addend = args->addend ? ((const float *)args->addend)[at] : 0;
            ((float *)args->out)[at] = sums[i * PANEL + j] + addend;
        }
}

/* Asks for a share of the rows behind m: in long rows the processor foresees too little. */
static void ask_for_rows(const Arguments *args, const Part *part, int64_t m, int64_t turn,
                         int64_t turns) {
    enum { LINE = 64 / sizeof(Storage) };
    for (int i = 0; i < ROWS; i++) {
        const int64_t row = smaller(m + ROWS + i, args->shape.M - 1);
        const Storage *a = args->a + row * args->shape.K + part->k;
        for (int64_t k = turn * LINE; k < part->length; k += turns * LINE)
            __builtin_prefetch(a + k);
    }
}

/* ROWS rows from m on times the panels of the part. kept: [group_panels][ROWS][PANEL] sums of the
 * chunks before. */
static void multiply_rows(const Place *place, const Arguments *args, const Part *part, int64_t m,
                          int64_t rows, float *kept) {
    const int64_t steps = divide_up(part->length, UNIT);
    const Left left = left_rows(place, args, part, m);
    _Alignas(64) float sums[ROWS * PANEL];
    for (int64_t p = part->first_panel; p < part->last_panel; p++, kept += ROWS * PANEL) {
        const int64_t columns = smaller(PANEL, args->shape.N - p * PANEL);
        const Unit *panel = place->panels + (p - part->first_panel) * steps * PANEL;
        ask_for_rows(args, part, m, p - part->first_panel, part->last_panel - part->first_panel);
        tile_product(part->last ? sums : kept, part->first ? NULL : kept, PANEL, &left, panel,
                     columns, steps);
        if (part->last && KERNEL_BF16 && args->out_f32)
            store_tile_f32(args, m, p * PANEL, sums, rows, columns);
        else if (part->last)
            store_tile(args, m, p * PANEL, sums, rows, columns);
    }
}

static void run_task(const Place *place, const Arguments *args, int64_t group, int64_t block) {
    const Cut *cut = &args->cut;
    const int64_t m = block * cut->rows, end = smaller(args->shape.M, m + cut->rows);
    for (int64_t c = 0; c < cut->chunks; c++) {
        const Part part = {.first_panel = group * cut->panels / cut->groups,
                           .last_panel = (group + 1) * cut->panels / cut->groups,
                           .k = c * cut->chunk,
                           .length = smaller(cut->chunk, args->shape.K - c * cut->chunk),
                           .first = c == 0,
                           .last = c == cut->chunks - 1};
        pack_group(place, args, &part);
        for (int64_t row = m; row < end; row += ROWS)
            multiply_rows(place, args, &part, row, smaller(ROWS, end - row),
                          place->sums + (row - m) * cut->group_panels * PANEL);
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

/* profile: where hearth's training step goes, by kind of operation, beside what each kind reaches. The
 * micro-batch and the update are run by themselves, without data and log, on random tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/parameters.h"
#include "step/cost.h"
#include "workload.h"

static int64_t rounds = 5;

static const Option own[] = {
    {"rounds", OPTION_INTEGER, &rounds, "N", "measured micro-batches and updates", 1, 1000},
    {NULL},
};

static const Command command = {
    .name = "profile",
    .summary = "Where a training step goes, by kind of operation; medians over the rounds.",
    .usage = "profile --model NAME [--rounds N] [--json] [options of 'hearth train']",
    .details = "Example:\n"
               "  profile --model llama-110m --seq-len 1024 --micro-batch 8 --batch-tokens 8192",
};

/* A row of the table: all operations that are alike, over an optimizer step. */
typedef struct Row {
    const Operation *operation; /* one of them */
    double count, seconds, flops, bytes;
    bool matrix;
} Row;

typedef struct Profile {
    Row *shapes; /* matmuls by role and shape, all else by kind */
    Row *kinds;  /* matmuls by role only */
    size_t shape_count, kind_count;
    double seconds, outside; /* of the step; of it outside matmuls and attention */
    double peak;             /* FLOP/s, the best that was measured between the rounds */
    double bandwidth;        /* bytes/s, likewise */
} Profile;

static bool set_inputs(Workload *workload, Executor *executor, Error *error) {
    const StepPlan *plan = &workload->plan;
    const Program *program = &plan->program;
    if (!model_fill_tables(plan->backend, executor, program, &workload->settings.model, error) ||
        !parameters_initialise(plan->backend, executor, program, 1, error))
        return false;
    const int inputs[] = {program->tokens, program->targets};
    int64_t count = program->B * program->T;
    int32_t *ids = allocate((size_t)count, sizeof *ids, error);
    if (!ids) return false;
    for (uint64_t input = 0; input < 2; input++) {
        for (int64_t i = 0; i < count; i++)
            ids[i] = (int32_t)random_below(1, 1 + input, (uint64_t)i,
                                           (uint64_t)workload->settings.model.vocab);
        plan->backend->upload(executor, inputs[input], 0, ids, count * (int64_t)sizeof *ids);
    }
    free(ids);
    return true;
}

/* Runs one micro-batch and one update, their operations' seconds into `seconds` [operation_count]. */
static bool run_round(const StepPlan *plan, Executor *executor, int64_t step, double *seconds,
                      Error *error) {
    StepScalars scalars = {.learning_rate = 1e-4f, .gradient_scale = 1, .step = step, .seed = 1};
    plan->backend->profile(executor, seconds);
    return plan->backend->run(executor, SECTION_MICRO_BATCH, &scalars, error) &&
           plan->backend->run(executor, SECTION_UPDATE, &scalars, error);
}

/* A processor's caches are left alone; a GPU needs large products to show its peak. */
static bool measure_device(const StepPlan *plan, Profile *profile, Error *error) {
    bool processor = !plan->device.driver_bytes;
    Device device = plan->device;
    if (!plan->backend->measure(&device, plan->program.storage, processor ? 1 << 20 : 512 << 20,
                                error))
        return false;
    if (device.matmul_flops > profile->peak) profile->peak = device.matmul_flops;
    if (device.bandwidth > profile->bandwidth) profile->bandwidth = device.bandwidth;
    return true;
}

/* One round to warm up, then `rounds`; afterwards the first count values are the medians. */
static bool measure(const StepPlan *plan, Executor *executor, double *seconds, Profile *profile,
                    Error *error) {
    size_t count = (size_t)plan->program.operation_count;
    for (int64_t round = 0; round <= rounds; round++) {
        double *samples = seconds + count * (size_t)(round ? round - 1 : 0);
        memset(samples, 0, count * sizeof *samples);
        if (!run_round(plan, executor, round + 1, samples, error) ||
            !measure_device(plan, profile, error))
            return false;
        log_status("round %lld of %lld", (long long)round, (long long)rounds);
    }
    log_status_end();
    double *values = allocate((size_t)rounds, sizeof *values, error);
    if (!values) return false;
    for (size_t o = 0; o < count; o++) {
        for (size_t r = 0; r < (size_t)rounds; r++) values[r] = seconds[r * count + o];
        seconds[o] = median(values, (size_t)rounds);
    }
    free(values);
    return true;
}

static bool same_label(const Operation *a, const Operation *b) {
    return workload_label(a) == workload_label(b);
}

static void add_to(Row *rows, size_t *count, const Row *added,
                   bool (*same)(const Operation *, const Operation *)) {
    size_t i = 0;
    while (i < *count && !same(rows[i].operation, added->operation)) i++;
    if (i == *count) rows[(*count)++] = (Row){added->operation, .matrix = added->matrix};
    rows[i].count += added->count, rows[i].seconds += added->seconds;
    rows[i].flops += added->flops, rows[i].bytes += added->bytes;
}

static int by_seconds(const void *a, const void *b) {
    double left = ((const Row *)a)->seconds, right = ((const Row *)b)->seconds;
    return (left < right) - (left > right);
}

static void add_up(Profile *profile, const Workload *workload, const double *seconds) {
    const Program *program = &workload->plan.program;
    for (int s = SECTION_MICRO_BATCH; s <= SECTION_UPDATE; s++) {
        Section section = program->sections[s];
        double times = s == SECTION_MICRO_BATCH ? (double)workload_micro_batches(workload) : 1;
        for (int o = section.first; o < section.first + section.count; o++) {
            Cost cost = operation_cost(program, &program->operations[o]);
            Row row = {&program->operations[o], times,      times * seconds[o], times * cost.flops,
                       times * cost.bytes,      cost.matrix};
            add_to(profile->shapes, &profile->shape_count, &row, workload_alike);
            add_to(profile->kinds, &profile->kind_count, &row, same_label);
            profile->seconds += row.seconds;
            if (!row.matrix) profile->outside += row.seconds;
        }
    }
    qsort(profile->shapes, profile->shape_count, sizeof *profile->shapes, by_seconds);
    qsort(profile->kinds, profile->kind_count, sizeof *profile->kinds, by_seconds);
}

/* ---- Output ---- */

static double fraction_of_peak(const Profile *profile, const Workload *workload) {
    double flops =
        step_plan_flops_per_token(&workload->plan) * (double)workload->settings.batch_tokens;
    return flops / profile->seconds / profile->peak;
}

static void print_row(const Profile *profile, const Row *row, const char *name) {
    printf("  %-44s %5.0f %10.2f %6.1f%%", name, row->count, 1e3 * row->seconds,
           100 * row->seconds / profile->seconds);
    if (row->matrix)
        printf(" %8.0f GFLOP/s %5.1f%% of peak\n", 1e-9 * row->flops / row->seconds,
               100 * row->flops / row->seconds / profile->peak);
    else
        printf(" %8.1f GB/s\n", 1e-9 * row->bytes / row->seconds);
}

static void print_table(const Profile *profile, const Workload *workload) {
    const StepPlan *plan = &workload->plan;
    char name[96];
    printf("%s; %s, T = %lld, micro-batch %lld, %lld of them in a step, recompute %s\n",
           plan->device.name, workload->options.model, (long long)plan->program.T,
           (long long)plan->program.B, (long long)workload_micro_batches(workload),
           recompute_name(plan->plan.choice.recompute));
    printf("step: %.1f ms, %.0f tokens/s, %.1f%% of the peak of %.0f GFLOP/s; outside matmuls and "
           "attention %.1f%%\n",
           1e3 * profile->seconds, (double)workload->settings.batch_tokens / profile->seconds,
           100 * fraction_of_peak(profile, workload), 1e-9 * profile->peak,
           100 * profile->outside / profile->seconds);
    printf("by kind:%44s %10s %7s\n", "count", "ms", "share");
    for (size_t i = 0; i < profile->kind_count; i++)
        print_row(profile, &profile->kinds[i], workload_label(profile->kinds[i].operation));
    printf("matmuls by shape (out[M,N], sums of K):\n");
    for (size_t i = 0; i < profile->shape_count; i++) {
        const Operation *operation = profile->shapes[i].operation;
        if (operation->kind != OP_MATMUL) continue;
        snprintf(name, sizeof name, "%s %lld x %lld x %lld", workload_label(operation) + 7,
                 (long long)operation->matmul.M, (long long)operation->matmul.N,
                 (long long)operation->matmul.K);
        print_row(profile, &profile->shapes[i], name);
    }
}

static json_t *row_json(const Profile *profile, const Row *row) {
    json_t *json = json_object();
    json_object_set_new(json, "operation", json_string(workload_label(row->operation)));
    json_object_set_new(json, "count", json_real(row->count));
    json_object_set_new(json, "seconds", json_real(row->seconds));
    json_object_set_new(json, "share", json_real(row->seconds / profile->seconds));
    if (row->matrix)
        json_object_set_new(json, "flops_per_s", json_real(row->flops / row->seconds));
    else
        json_object_set_new(json, "bytes_per_s", json_real(row->bytes / row->seconds));
    return json;
}

static void print_json(const Profile *profile, const Workload *workload) {
    json_t *json = json_object(), *kinds = json_array(), *matmuls = json_array();
    const Program *program = &workload->plan.program;
    json_object_set_new(json, "model", json_string(workload->options.model));
    json_object_set_new(json, "seq_len", json_integer(program->T));
    json_object_set_new(json, "dtype", json_string(dtype_name(program->storage)));
    json_object_set_new(json, "micro_batch", json_integer(program->B));
    json_object_set_new(json, "batch_tokens", json_integer(workload->settings.batch_tokens));
    json_object_set_new(json, "recompute",
                        json_string(recompute_name(workload->plan.plan.choice.recompute)));
    json_object_set_new(json, "seconds", json_real(profile->seconds));
    json_object_set_new(json, "device", json_string(workload->plan.device.name));
    json_object_set_new(json, "peak_flops", json_real(profile->peak));
    json_object_set_new(json, "peak_bytes_per_s", json_real(profile->bandwidth));
    json_object_set_new(json, "fraction_of_peak", json_real(fraction_of_peak(profile, workload)));
    json_object_set_new(json, "outside_share", json_real(profile->outside / profile->seconds));
    for (size_t i = 0; i < profile->kind_count; i++)
        json_array_append_new(kinds, row_json(profile, &profile->kinds[i]));
    for (size_t i = 0; i < profile->shape_count; i++) {
        const Operation *operation = profile->shapes[i].operation;
        if (operation->kind != OP_MATMUL) continue;
        json_t *row = row_json(profile, &profile->shapes[i]);
        json_object_set_new(row, "M", json_integer(operation->matmul.M));
        json_object_set_new(row, "N", json_integer(operation->matmul.N));
        json_object_set_new(row, "K", json_integer(operation->matmul.K));
        json_array_append_new(matmuls, row);
    }
    json_object_set_new(json, "operations", kinds);
    json_object_set_new(json, "matmuls", matmuls);
    workload_print(json);
}

static bool run(Workload *workload, Error *error) {
    const StepPlan *plan = &workload->plan;
    size_t count = (size_t)plan->program.operation_count;
    Profile profile = {.shapes = allocate(count, sizeof(Row), error),
                       .kinds = allocate(count, sizeof(Row), error)};
    double *seconds = allocate(count * (size_t)rounds, sizeof *seconds, error);
    Executor *executor = plan->backend->open(&plan->program, error);
    bool done = profile.shapes && profile.kinds && seconds && executor &&
                set_inputs(workload, executor, error) &&
                measure(plan, executor, seconds, &profile, error);
    if (done) {
        add_up(&profile, workload, seconds);
        options_json() ? print_json(&profile, workload) : print_table(&profile, workload);
    }
    if (executor) plan->backend->close(executor);
    free(seconds);
    free(profile.kinds);
    free(profile.shapes);
    return done;
}

int main(int argc, char **argv) {
    return workload_main(&command, own, run, argc, argv);
}

#include "workload.h"

#include <stdlib.h>
#include <string.h>

#include "train/backends.h"

static bool plan(Workload *workload, Error *error) {
    const Backend *backend = backend_find(workload->options.device, error);
    return backend && train_options_resolve(&workload->options, 0, &workload->settings, error) &&
           step_plan_make(&workload->plan, &workload->settings, backend, NULL, error);
}

/* -1 to go on, or the exit status of a program that is done. The workload must not move. */
static int open_workload(Workload *workload, const Command *command, const Option *own, int argc,
                         char **argv) {
    Error error;
    int words;
    train_options_init(&workload->options);
    workload->options.eval_every = 0;
    workload->options.device = "cpu";
    Option *end = workload->options.table;
    while (end->name) end++;
    while (own->name) *end++ = *own++;
    ParseResult parsed = options_parse(command, workload->options.table, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words) {
        fail(&error, "'%s' is not an option", argv[0]);
        return command_misused(command, &error);
    }
    return plan(workload, &error) ? -1 : command_failed(&error);
}

int workload_main(const Command *command, const Option *own,
                  bool (*run)(Workload *workload, Error *error), int argc, char **argv) {
    static Workload workload;
    Error error;
    int status = open_workload(&workload, command, own, argc, argv);
    if (status >= 0) return status;
    bool done = run(&workload, &error);
    step_plan_free(&workload.plan);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

void workload_print(json_t *json) {
    char *text = json_dumps(json, JSON_INDENT(2));
    if (text) puts(text);
    free(text);
    json_decref(json);
}

int64_t workload_micro_batches(const Workload *workload) {
    return settings_rows(&workload->settings) / workload->plan.program.B;
}

bool workload_alike(const Operation *a, const Operation *b) {
    if (a->kind != b->kind) return false;
    const MatmulShape *left = &a->matmul, *right = &b->matmul;
    return a->kind != OP_MATMUL || (left->role == right->role && left->M == right->M &&
                                    left->N == right->N && left->K == right->K);
}

const char *workload_label(const Operation *operation) {
    static const char *const roles[] = {[MATMUL_FORWARD] = "matmul forward",
                                        [MATMUL_INPUT_GRADIENT] = "matmul input gradient",
                                        [MATMUL_WEIGHT_GRADIENT] = "matmul weight gradient",
                                        [MATMUL_UPDATE] = "matmul update"};
    return operation->kind == OP_MATMUL ? roles[operation->matmul.role]
                                        : operation_name(operation->kind);
}

static int by_value(const void *a, const void *b) {
    double left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return values[(count - 1) / 2];
}

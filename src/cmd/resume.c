#include "cmd/resume.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"

static Option *find(TrainOptions *options, const char *name) {
    return option_find(options->table, name, strlen(name));
}

bool resume_check_usage(const TrainOptions *options, Error *error) {
    if (options->resume && !options->run_directory)
        return fail(error, "--resume needs --run-dir DIR: the run to go on with");
    if (options->resume && options->init_from)
        return fail(error,
                    "--resume and --init-from exclude each other: a resumed run has its weights");
    return true;
}

static bool read_config(TrainOptions *options, const char *run_directory, Error *error) {
    char *path = path_join(run_directory, "config.yaml", error);
    bool done =
        path && (path_exists(path) || fail(error,
                                           "%s has no config.yaml to resume with: nothing was "
                                           "trained there",
                                           run_directory));
    if (done) done = options_read_yaml(options->table, path, error);
    free(path);
    return done;
}

/* A horizon that is given leaves none of those recorded. */
static void replace_horizon(TrainOptions *options) {
    static const char *const horizons[] = {"steps", "tokens", "tokens-per-param", "flops"};
    enum { HORIZONS = sizeof horizons / sizeof *horizons };
    bool given = false;
    for (int i = 0; i < HORIZONS; i++) given |= find(options, horizons[i])->given;
    for (int i = 0; i < HORIZONS && given; i++) find(options, horizons[i])->given = true;
}

/* The text that was given, or NULL; as if it was not, so that config.yaml says what is recorded. */
static const char *set_aside(TrainOptions *options, const char *name) {
    Option *option = find(options, name);
    const char *given = option->given ? *(const char *const *)option->value : NULL;
    option->given = false;
    return given;
}

bool resume_read_options(TrainOptions *options, Error *error) {
    const char *model = set_aside(options, "model"), *optimizer = set_aside(options, "optimizer");
    replace_horizon(options);
    if (!read_config(options, options->run_directory, error)) return false;
    if (model && strcmp(model, options->model) != 0)
        return fail(error,
                    "%s trains the model %s: --model %s needs a run of its own (another --run-dir)",
                    options->run_directory, options->model, model);
    if (optimizer && strcmp(optimizer, "auto") != 0 && strcmp(optimizer, options->optimizer) != 0)
        return fail(error,
                    "%s was begun with --optimizer %s: --optimizer %s needs a run of its own "
                    "(--init-from %s, another --run-dir)",
                    options->run_directory, options->optimizer, optimizer, options->run_directory);
    return true;
}

/* What may change, and then trains otherwise. A run is refused where its weights and its data would no longer
 * fit it; of another precision, micro-batch or logit chunk it warns itself. */
static bool changes_training(const TrainOptions *options, const char *name) {
    static const char *const names[] = {
        "steps",     "batch-tokens", "lr",      "matrix-lr",    "embedding-lr", "unembedding-lr",
        "scalar-lr", "recipe-ratio", "warmup",  "schedule",     "lr-floor",     "cooldown",
        "beta1",     "beta2",        "epsilon", "weight-decay", "clip"};
    /* Muon's momentum falls over the cool-down whatever the schedule. */
    bool cools = !strcmp(options->schedule, "wsd") || !strcmp(options->optimizer, "muon");
    if (!cools && !strcmp(name, "cooldown")) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* A number or a choice as it is typed. */
static void print_value(char text[32], const Option *option) {
    if (option->kind == OPTION_CHOICE)
        snprintf(text, 32, "%s", *(const char *const *)option->value);
    else if (option->kind == OPTION_NUMBER)
        snprintf(text, 32, "%.15g", *(const double *)option->value);
    else
        snprintf(text, 32, "%lld", (long long)*(const int64_t *)option->value);
}

bool resume_warn_of_changes(const TrainOptions *options, Error *error) {
    TrainOptions recorded;
    train_options_init(&recorded);
    if (!read_config(&recorded, options->run_directory, error)) return false;
    for (int i = 0; recorded.table[i].name; i++) {
        const Option *then = &recorded.table[i];
        char now[32], before[32];
        if (!then->given || !changes_training(options, then->name)) continue;
        print_value(now, &options->table[i]);
        print_value(before, then);
        if (strcmp(now, before) != 0)
            log_warning("--%s %s now, %s before", then->name, now, before);
    }
    return true;
}

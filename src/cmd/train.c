/* hearth train: starts or resumes a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/core_options.h"
#include "cmd/resume.h"
#include "cmd/train_options.h"
#include "cmd/verbs.h"
#include "text/utf8.h"
#include "train/backends.h"
#include "train/train.h"

static const Command command = {
    .name = "train",
    .summary = "Train a model on a dataset, or go on with a run that was stopped.",
    .usage = "hearth train --data DIR --run-dir DIR [--model NAME] [options]",
    .details =
        "Before step 1 the plan is printed: the model's size, every byte of memory, the predicted "
        "time. The run\n"
        "directory gets config.yaml, log.jsonl, TensorBoard files and checkpoints, which are "
        "Hugging Face model\n"
        "directories. Ctrl-C finishes the step, saves and exits; a second one exits at once.\n\n"
        "Example:\n"
        "  hearth tokenizer train --vocab 8192 --pattern gpt4 --out tok books/\n"
        "  hearth data build --tokenizer tok/tokenizer.json --out data books/\n"
        "  hearth train --data data --model llama-15m --steps 2000 --run-dir runs/first\n"
        "  hearth train --run-dir runs/first --resume",
};

/* YAML holds text, and paths may be any bytes. */
static bool check_text(const Option *options, Error *error) {
    for (const Option *option = options; option->name; option++) {
        if (option->kind != OPTION_TEXT) continue;
        const char *text = *(const char *const *)option->value;
        size_t length = text ? strlen(text) : 0;
        if (text && utf8_valid_prefix((const uint8_t *)text, length) != length)
            return fail(error, "--%s is not valid UTF-8, so config.yaml could not record it",
                        option->name);
    }
    return true;
}

/* The text of config.yaml: what belongs to one invocation only is left out. */
static char *config_text(const TrainOptions *options, Error *error) {
    Option recorded[TRAIN_OPTIONS_MOST] = {0};
    int count = 0;
    for (const Option *option = options->table; option->name; option++)
        if (strcmp(option->name, "resume") && strcmp(option->name, "stop-after") &&
            strcmp(option->name, "run-dir"))
            recorded[count++] = *option;
    char *text = NULL;
    size_t size;
    if (!check_text(recorded, error)) return NULL;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        fail_errno(error, "cannot write the configuration");
        return NULL;
    }
    options_write_yaml(recorded, file);
    if (fclose(file) == 0) return text;
    fail_errno(error, "cannot write the configuration");
    free(text);
    return NULL;
}

static bool check_tokenizer(const Dataset *dataset, const Tokenizer *tokenizer, Error *error) {
    char hash[SHA256_TEXT];
    if (!tokenizer || !dataset_tokenizer_hash(dataset)) return true;
    tokenizer_hash(tokenizer, hash);
    return !strcmp(hash, dataset_tokenizer_hash(dataset)) ||
           fail(error,
                "%s was built with another tokenizer than its tokenizer.json: build it again",
                dataset_directory(dataset));
}

static void name_special_tokens(const Tokenizer *tokenizer, ModelConfig *config) {
    if (!tokenizer) return;
    config->bos_id = config->eos_id = tokenizer_document_separator(tokenizer);
}

/* A number that there is none of (no evaluation was done) is null. */
static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void print_result(const TrainResult *result) {
    json_t *json = json_pack("{s:I, s:b}", "steps", (json_int_t)result->steps, "interrupted",
                             (int)result->interrupted);
    json_object_set_new(json, "planned_bytes", json_integer(result->planned_bytes));
    json_object_set_new(json, "loss", real_or_null(result->loss));
    json_object_set_new(json, "tokens_per_s", real_or_null(result->tokens_per_s));
    json_object_set_new(json, "val_loss", real_or_null(result->val_loss));
    json_object_set_new(json, "val_bpb", real_or_null(result->val_bpb));
    json_object_set_new(json, "core", real_or_null(result->core));
    char *text = json_dumps(json, JSON_COMPACT);
    if (text) puts(text);
    free(text);
    json_decref(json);
}

/* Without a validation split nothing is evaluated, unless that was asked for. */
static bool check_validation(TrainOptions *options, const Dataset *dataset, TrainSettings *settings,
                             Error *error) {
    if (!settings->eval_every || dataset_tokens(dataset, SPLIT_VALIDATION) > 1) return true;
    settings->eval_every = options->eval_every = 0;
    return !option_given(options->table, "eval-every") ||
           fail(
               error,
               "%s has no validation split for --eval-every: build it with --val-fraction, or give "
               "--eval-every 0",
               dataset_directory(dataset));
}

static bool run(TrainOptions *options, Error *error) {
    TrainSettings settings;
    TrainResult result;
    Tokenizer *tokenizer = NULL;
    const Backend *backend = backend_find(options->device, error);
    if (!backend) return false;
    options->device = backend->name;
    Dataset *dataset = dataset_open(options->data, error);
    bool done = dataset && tokenizer_open_if_any(options->data, &tokenizer, error) &&
                check_tokenizer(dataset, tokenizer, error) &&
                train_options_resolve(options, dataset_vocab_size(dataset), &settings, error) &&
                check_validation(options, dataset, &settings, error) &&
                (!options->resume || resume_warn_of_changes(options, error));
    Core core = {0};
    done = done && core_options_open(options, tokenizer, &settings, &core, error);
    char *config = done ? config_text(options, error) : NULL;
    done = config != NULL;
    if (done) {
        settings.backend = backend;
        name_special_tokens(tokenizer, &settings.model);
        done = train(&settings, dataset, tokenizer, config, &result, error);
        if (done && options_json()) print_result(&result);
    }
    free(config);
    core_close(&core);
    tokenizer_free(tokenizer);
    dataset_free(dataset);
    return done;
}

static bool check_usage(const TrainOptions *options, Error *error) {
    if (!options->run_directory)
        return fail(error, "--run-dir DIR is needed, such as --run-dir runs/first");
    return resume_check_usage(options, error);
}

int verb_train(int argc, char **argv) {
    TrainOptions options;
    Error error;
    int words;
    train_options_init(&options);
    ParseResult parsed = options_parse(&command, options.table, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words) {
        fail(&error, "'%s' is not an option; give the dataset with --data", argv[0]);
        return command_misused(&command, &error);
    }
    if (!check_usage(&options, &error)) return command_misused(&command, &error);
    if (!train_options_make_absolute(&options, &error) ||
        (options.resume && !resume_read_options(&options, &error)))
        return command_failed(&error);
    if (!options.data) {
        fail(&error, "--data DIR is needed: a dataset made by 'hearth data build'");
        return command_misused(&command, &error);
    }
    return run(&options, &error) ? EXIT_SUCCESS : command_failed(&error);
}

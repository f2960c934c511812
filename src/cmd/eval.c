/* hearth eval: loss and bits per byte of a checkpoint, or its CORE metric. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/threads.h"
#include "cmd/checkpoint_path.h"
#include "cmd/eval_core.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "eval/evaluate.h"
#include "train/backends.h"
#include "train/rows.h"

static const Command command = {
    .name = "eval",
    .summary =
        "Loss and bits per byte of a checkpoint, on a dataset or on text; or its CORE metric.",
    .usage = "hearth eval --checkpoint DIR [--data DIR | FILES... | --core DIR]",
    .details =
        "DIR is a checkpoint, a Hugging Face model, or a run (whose latest checkpoint is taken).\n"
        "FILES are text or JSON lines (also .gz or .zst), Parquet, directories, patterns, or - for "
        "stdin.\n"
        "In text, every token is predicted from at least half a context of what stands before it.\n"
        "Bits per byte compares models with different tokenizers, and with gzip or xz.\n"
        "--core takes a bundle as DCLM and nanochat have it: core.yaml (without it CORE's 22 "
        "tasks),\n"
        "eval_meta_data.csv with the baselines, and eval_data. Tasks whose data is missing are "
        "left out.\n\n"
        "Example:\n"
        "  hearth eval --checkpoint runs/first --data data/books\n"
        "  hearth eval --checkpoint runs/first held-out.txt --json\n"
        "  hearth eval --checkpoint runs/first --core eval_bundle --max-per-task 500",
};

typedef struct EvalOptions {
    const char *checkpoint, *data, *split, *packing, *precision, *device;
    ReaderSettings reader;
    int64_t tokens, sequence_length, threads;
    EvalCoreOptions core;
} EvalOptions;

/* Options that go with only one kind of evaluation. */
static bool check_options(const EvalOptions *options, int files, Error *error) {
    if (strcmp(options->packing, "auto") != 0 && !options->data)
        return fail(error, "--packing goes with --data: files and CORE have rows of their own");
    if (options->tokens && files)
        return fail(error, "--tokens goes with --data; files are read whole");
    if (options->core.bundle && (options->tokens || options->sequence_length))
        return fail(error, "--tokens and --seq-len do not go with --core; --max-per-task does");
    if (!options->core.bundle &&
        (options->core.csv || options->core.details || options->core.max_per_task))
        return fail(error, "--csv, --core-details and --max-per-task go with --core");
    return true;
}

static bool check_usage(const EvalOptions *options, int files, Error *error) {
    if (!options->checkpoint) return fail(error, "--checkpoint DIR is needed");
    int kinds = (options->data != NULL) + (files > 0) + (options->core.bundle != NULL);
    if (!kinds) return fail(error, "nothing to evaluate: give --data DIR, files or --core DIR");
    if (kinds > 1) return fail(error, "give one of --data, files and --core, not several");
    return check_options(options, files, error);
}

static bool check_dataset(const LoadedModel *model, const Dataset *dataset, Error *error) {
    const char *directory = dataset_directory(dataset),
               *made_with = dataset_tokenizer_hash(dataset);
    long long needed = dataset_vocab_size(dataset), vocab = model->config.vocab;
    if (model->tokenizer && made_with) {
        char hash[SHA256_TEXT];
        tokenizer_hash(model->tokenizer, hash);
        if (strcmp(hash, made_with))
            return fail(error,
                        "dataset %s was made with another tokenizer than the checkpoint's: "
                        "build it again with the checkpoint's tokenizer.json",
                        directory);
    }
    return needed <= vocab ||
           fail(error, "dataset %s has a vocabulary of %lld and the model one of %lld", directory,
                needed, vocab);
}

/* A dataset is evaluated in the rows of training, with another packing if --packing says so. */
static bool choose_rows(const EvalOptions *options, const char *checkpoint, Rows *rows,
                        Error *error) {
    ModelConfig config;
    if (!model_config_load(&config, checkpoint, error) ||
        !rows_of_checkpoint(checkpoint, &config, rows, error))
        return false;
    packing_find(options->packing, &rows->packing); /* which "auto" leaves as it is */
    log_line("data: packing %s; attention %s", packing_name(rows->packing),
             attention_name(rows->document_mask));
    return true;
}

static bool evaluate_data(const LoadedModel *model, const EvalOptions *options, Packing packing,
                          Evaluation *result, Error *error) {
    Split split = strcmp(options->split, "train") ? SPLIT_VALIDATION : SPLIT_TRAIN;
    Dataset *dataset = dataset_open(options->data, error);
    bool done = dataset && check_dataset(model, dataset, error);
    if (done && !dataset_tokens(dataset, split))
        done = fail(error, "dataset %s has no %s split; --split chooses the other", options->data,
                    options->split);
    if (done)
        done = evaluate_dataset(&model->inference, dataset, split, packing, options->tokens, true,
                                result, error);
    dataset_free(dataset);
    return done;
}

static bool evaluate_files(const LoadedModel *model, const EvalOptions *options,
                           const char *const *files, int count, Evaluation *result, Error *error) {
    Reader *reader = reader_open(files, count, &options->reader, error);
    bool done = reader && evaluate_text(&model->inference, reader, result, error);
    reader_free(reader);
    return done;
}

static bool evaluate_loss(const EvalOptions *options, const char *directory,
                          InferenceSettings settings, const char *const *files, int count,
                          Evaluation *result, Error *error) {
    LoadedModel model;
    Rows rows = {.document_mask = true};
    if (options->data && !choose_rows(options, directory, &rows, error)) return false;
    settings.sequence_length = options->sequence_length;
    settings.micro_batch = -1;
    settings.across_documents = !rows.document_mask;
    if (!model_open(&model, directory, &settings, error)) return false;
    bool done = options->data ? evaluate_data(&model, options, rows.packing, result, error)
                              : evaluate_files(&model, options, files, count, result, error);
    model_close(&model);
    if (done && !isfinite(result->loss))
        return fail(error,
                    "the loss is %f: the checkpoint's weights are damaged or its training diverged",
                    result->loss);
    return done;
}

static bool print_result(const Evaluation *result, Error *error) {
    if (options_json()) {
        json_t *bpb = isnan(result->bpb) ? json_null() : json_real(result->bpb);
        json_t *root = json_pack("{s:f, s:o, s:I, s:I}", "loss", result->loss, "bpb", bpb, "tokens",
                                 (json_int_t)result->tokens, "bytes", (json_int_t)result->bytes);
        if (!root || json_dumpf(root, stdout, 0))
            return fail(error, "out of memory writing the result");
        json_decref(root);
        putchar('\n');
    } else {
        printf("loss %.4f nats per token over %lld tokens\n", result->loss,
               (long long)result->tokens);
        if (isnan(result->bpb))
            printf("bits per byte unknown: no tokenizer says what the tokens stand for\n");
        else
            printf("%.4f bits per byte over %lld bytes\n", result->bpb, (long long)result->bytes);
    }
    return !(fflush(stdout) || ferror(stdout)) || fail_errno(error, "cannot write the result");
}

static bool evaluate(const EvalOptions *options, const char *const *files, int count,
                     Error *error) {
    if (options->threads > 0) thread_count_set((int)options->threads);
    const InferenceSettings settings = {.backend = backend_find(options->device, error),
                                        .storage = strcmp(options->precision, "fp32") ? DTYPE_BF16
                                                                                      : DTYPE_F32};
    const char *directory = settings.backend ? checkpoint_path(options->checkpoint, error) : NULL;
    Evaluation result;
    bool done = directory != NULL;
    if (done && options->core.bundle)
        done = eval_core(directory, settings.backend, settings.storage, &options->core, error);
    else if (done)
        done = evaluate_loss(options, directory, settings, files, count, &result, error) &&
               print_result(&result, error);
    return done;
}

int verb_eval(int argc, char **argv) {
    EvalOptions values = {.split = "val", .packing = "auto", .precision = "bf16", .device = "this"};
    Option options[] = {
        {.name = "checkpoint",
         .kind = OPTION_TEXT,
         .value = &values.checkpoint,
         .argument = "DIR",
         .help = "the model"},
        {.name = "data",
         .kind = OPTION_TEXT,
         .value = &values.data,
         .argument = "DIR",
         .help = "a dataset made by 'hearth data build'"},
        {.name = "split",
         .kind = OPTION_CHOICE,
         .value = &values.split,
         .choices = "val|train",
         .help = "which part of the dataset"},
        {.name = "packing",
         .kind = OPTION_CHOICE,
         .value = &values.packing,
         .choices = "auto|stream|documents|bestfit",
         .help = "how the dataset's documents fill rows (as in training; where no record of it is: "
                 "bestfit for nanochat's models, else stream)"},
        {.name = "tokens",
         .kind = OPTION_COUNT,
         .value = &values.tokens,
         .argument = "N",
         .help = "of the dataset only about the first N tokens"},
        {.name = "seq-len",
         .kind = OPTION_COUNT,
         .value = &values.sequence_length,
         .argument = "N",
         .help = "context in tokens; the model's own unless given"},
        {.name = "field",
         .kind = OPTION_TEXT,
         .value = &values.reader.field,
         .argument = "NAME",
         .help = "the member of JSON lines, or Parquet column, that holds the text (text)"},
        {.name = "split-on",
         .kind = OPTION_TEXT,
         .value = &values.reader.split_on,
         .argument = "TEXT",
         .help = "text files: what stands between documents; a file is one if not given"},
        {.name = "core",
         .kind = OPTION_TEXT,
         .value = &values.core.bundle,
         .argument = "DIR",
         .help = "a bundle of the CORE metric's tasks"},
        {.name = "max-per-task",
         .kind = OPTION_COUNT,
         .value = &values.core.max_per_task,
         .argument = "N",
         .help = "of each task only N examples, always the same"},
        {.name = "csv",
         .kind = OPTION_TEXT,
         .value = &values.core.csv,
         .argument = "FILE",
         .help = "write CORE's table there as well"},
        {.name = "core-details",
         .kind = OPTION_TEXT,
         .value = &values.core.details,
         .argument = "FILE",
         .help = "write every example's outcome there, as JSON lines"},
        {.name = "precision",
         .kind = OPTION_CHOICE,
         .value = &values.precision,
         .choices = "bf16|fp32",
         .help = "of weights and activations"},
        {.name = "device",
         .kind = OPTION_TEXT,
         .value = &values.device,
         .argument = "NAME",
         .help = "cpu, cuda, or this: the GPU where one can be used, else the CPU"},
        {.name = "threads",
         .kind = OPTION_INTEGER,
         .value = &values.threads,
         .argument = "N",
         .help = "processor threads (all)",
         .minimum = 1,
         .maximum = 1024},
        {0},
    };
    Error error;
    int files;
    ParseResult parsed = options_parse(&command, options, argc, argv, &files);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!check_usage(&values, files, &error)) return command_misused(&command, &error);
    return evaluate(&values, (const char *const *)argv, files, &error) ? EXIT_SUCCESS
                                                                       : command_failed(&error);
}

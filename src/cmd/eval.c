/* hearth eval: loss and bits per byte of a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/checkpoint_path.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "eval/evaluate.h"
#include "train/backends.h"

static const Command command = {
    .name = "eval",
    .summary = "Loss and bits per byte of a checkpoint, on a dataset or on text.",
    .usage = "hearth eval --checkpoint DIR [--data DIR | FILES...]",
    .details =
        "DIR is a checkpoint, a Hugging Face model, or a run (whose latest checkpoint is taken).\n"
        "FILES are text or JSON lines (also .gz or .zst), directories, patterns, or - for stdin.\n"
        "In text, every token is predicted from at least half a context of what stands before it.\n"
        "Bits per byte compares models with different tokenizers, and with gzip or xz.\n\n"
        "Example:\n"
        "  hearth eval --checkpoint runs/first --data data/books\n"
        "  hearth eval --checkpoint runs/first held-out.txt --json",
};

typedef struct EvalOptions {
    const char *checkpoint, *data, *split, *precision, *device;
    ReaderSettings reader;
    int64_t tokens, sequence_length;
} EvalOptions;

static bool check_usage(const EvalOptions *options, int files, Error *error) {
    if (!options->checkpoint) return fail(error, "--checkpoint DIR is needed");
    if (!options->data && !files)
        return fail(error, "nothing to evaluate: give --data DIR or files");
    if (options->data && files) return fail(error, "give either --data or files, not both");
    if (options->tokens && files)
        return fail(error, "--tokens goes with --data; files are read whole");
    return true;
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

static bool evaluate_data(const LoadedModel *model, const EvalOptions *options, Evaluation *result,
                          Error *error) {
    Split split = strcmp(options->split, "train") ? SPLIT_VALIDATION : SPLIT_TRAIN;
    Dataset *dataset = dataset_open(options->data, error);
    bool done = dataset && check_dataset(model, dataset, error);
    if (done && !dataset_tokens(dataset, split))
        done = fail(error, "dataset %s has no %s split; --split chooses the other", options->data,
                    options->split);
    if (done)
        done = evaluate_dataset(&model->inference, dataset, split, PACKING_STREAM, options->tokens,
                                true, result, error);
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

static bool evaluate(const EvalOptions *options, const char *const *files, int count,
                     Evaluation *result, Error *error) {
    const InferenceSettings settings = {.backend = backend_find(options->device, error),
                                        .sequence_length = options->sequence_length,
                                        .micro_batch = -1,
                                        .storage = strcmp(options->precision, "fp32") ? DTYPE_BF16
                                                                                      : DTYPE_F32};
    LoadedModel model = {0};
    char *path = settings.backend ? checkpoint_path(options->checkpoint, error) : NULL;
    bool done = path && model_open(&model, path, &settings, error);
    free(path);
    if (!done) return false;
    done = options->data ? evaluate_data(&model, options, result, error)
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

int verb_eval(int argc, char **argv) {
    EvalOptions values = {.split = "val", .precision = "bf16", .device = "this"};
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
         .help = "JSON lines: the member that holds the text; 'text' unless given"},
        {.name = "split-on",
         .kind = OPTION_TEXT,
         .value = &values.reader.split_on,
         .argument = "TEXT",
         .help = "text files: what stands between documents; a file is one if not given"},
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
        {0},
    };
    Error error;
    Evaluation result;
    int files;
    ParseResult parsed = options_parse(&command, options, argc, argv, &files);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!check_usage(&values, files, &error)) return command_misused(&command, &error);
    if (!evaluate(&values, (const char *const *)argv, files, &result, &error) ||
        !print_result(&result, &error))
        return command_failed(&error);
    return EXIT_SUCCESS;
}

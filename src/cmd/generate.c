/* hearth generate: text from a checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cmd/checkpoint_path.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "eval/generate.h"
#include "eval/stream.h"
#include "train/backends.h"

static const Command command = {
    .name = "generate",
    .summary = "Sample text from a checkpoint.",
    .usage = "hearth generate --checkpoint DIR --prompt TEXT [options]",
    .details =
        "DIR is a checkpoint, a Hugging Face model, or a run (whose latest checkpoint is taken).\n"
        "Without --prompt the prompt is read from standard input, less a line break at its end;\n"
        "where nothing is there, the model begins a text of its own. The prompt and what follows\n"
        "it are printed as they come. --json gives {\"text\", \"token_ids\"} of what follows "
        "alone.\n"
        "The same options give the same text.\n\n"
        "Example:\n"
        "  hearth generate --checkpoint runs/first --prompt 'Once upon a time' --temperature 0.7",
};

typedef struct GenerateOptions {
    const char *checkpoint, *prompt, *stop, *precision, *device;
    int64_t max_tokens, seed;
    SamplingSettings sampling;
} GenerateOptions;

/* ---- The prompt ---- */

static bool read_prompt(const GenerateOptions *options, Bytes *prompt, Error *error) {
    enum { MOST = 1 << 26 };
    if (options->prompt)
        return bytes_append(prompt, options->prompt, strlen(options->prompt), error);
    if (isatty(STDIN_FILENO)) return true;
    if (!file_read("/dev/stdin", MOST, prompt, error)) return false;
    if (prompt->size && prompt->data[prompt->size - 1] == '\n') prompt->size--;
    return true;
}

/* ---- What comes out ---- */

typedef struct Output {
    const Tokenizer *tokenizer;
    TextStream stream;
    Bytes text; /* what follows the prompt */
    Tokens ids;
    size_t shown; /* bytes of the text */
    bool failed;
    Error error;
} Output;

/* Shows text that has become certain at once; with --json it waits. */
static bool show(Output *output) {
    if (options_json() || output->shown == output->text.size) return true;
    fwrite(output->text.data + output->shown, 1, output->text.size - output->shown, stdout);
    output->shown = output->text.size;
    output->failed = fflush(stdout) != 0;
    return !output->failed || fail_errno(&output->error, "cannot write the text");
}

static bool take_token(void *context, uint32_t id) {
    Output *output = context;
    Tokens *ids = &output->ids;
    if (!reserve(&ids->ids, &ids->capacity, ids->count + 1, sizeof id, &output->error)) {
        output->failed = true;
        return false;
    }
    ids->ids[ids->count++] = id;
    size_t size;
    const uint8_t *bytes = tokenizer_token(output->tokenizer, id, &size);
    if (!bytes || tokenizer_is_special(output->tokenizer, id)) return true;
    output->failed = !text_stream_push(&output->stream, bytes, size, &output->text, &output->error);
    return !output->failed && show(output) && !output->stream.stopped;
}

/* The prompt as valid text, too. */
static bool show_prompt(const Bytes *prompt, Error *error) {
    TextStream stream = {0};
    Bytes text = {0};
    bool done = text_stream_push(&stream, prompt->data, prompt->size, &text, error) &&
                text_stream_finish(&stream, &text, error);
    if (done && text.size) fwrite(text.data, 1, text.size, stdout);
    fflush(stdout);
    text_stream_free(&stream);
    bytes_free(&text);
    return done;
}

static bool finish(Output *output, double seconds, Error *error) {
    if (!text_stream_finish(&output->stream, &output->text, error)) return false;
    if (options_json()) {
        json_t *ids = json_array();
        for (size_t i = 0; i < output->ids.count; i++)
            json_array_append_new(ids, json_integer(output->ids.ids[i]));
        const char *text = output->text.size ? (const char *)output->text.data : "";
        json_t *root = json_pack("{s:s%, s:o}", "text", text, output->text.size, "token_ids", ids);
        if (!root || json_dumpf(root, stdout, 0))
            return fail(error, "out of memory writing the result");
        json_decref(root);
    } else if (!show(output)) {
        *error = output->error;
        return false;
    }
    putchar('\n');
    if (fflush(stdout) || ferror(stdout)) return fail_errno(error, "cannot write the text");
    log_line("%zu tokens, %.1f tokens/s", output->ids.count, (double)output->ids.count / seconds);
    return true;
}

/* ---- Generation ---- */

static int64_t limit_tokens(const LoadedModel *model, const Tokens *prompt, int64_t wanted) {
    int64_t context = model->config.sequence_length, room = context - (int64_t)prompt->count;
    if (room < 1 || wanted <= room) return wanted;
    log_line("at most %lld tokens fit behind the prompt into the model's context of %lld",
             (long long)room, (long long)context);
    return room;
}

static bool continue_prompt(const LoadedModel *model, const GenerateOptions *options,
                            const Bytes *text, const Tokens *prompt, Error *error) {
    Output output = {.tokenizer = model->tokenizer,
                     .stream = {.stops = &options->stop, .stop_count = options->stop ? 1 : 0}};
    const Generation generation = {.prompt = prompt->ids,
                                   .prompt_count = (int64_t)prompt->count,
                                   .max_tokens = limit_tokens(model, prompt, options->max_tokens),
                                   .end_token = tokenizer_document_separator(model->tokenizer),
                                   .token = take_token,
                                   .context = &output};
    Sampler *sampler =
        sampler_new(&options->sampling, tokenizer_vocab_size(model->tokenizer), error);
    double start = seconds_now();
    bool done = sampler && generation_check(&model->inference, &generation, error) &&
                (options_json() || show_prompt(text, error)) &&
                generate(&model->inference, sampler, &generation, error);
    if (done && output.failed) {
        *error = output.error;
        done = false;
    }
    done = done && finish(&output, seconds_now() - start, error);
    sampler_free(sampler);
    text_stream_free(&output.stream);
    bytes_free(&output.text);
    tokens_free(&output.ids);
    return done;
}

/* A token is at least a byte, so the prompt has at most its bytes and the separator. */
static bool open_model(LoadedModel *model, const GenerateOptions *options, const Bytes *text,
                       Error *error) {
    const InferenceSettings settings = {.backend = backend_find(options->device, error),
                                        .context = (int64_t)text->size + 1 + options->max_tokens,
                                        .storage = strcmp(options->precision, "fp32") ? DTYPE_BF16
                                                                                      : DTYPE_F32};
    const char *path = settings.backend ? checkpoint_path(options->checkpoint, error) : NULL;
    return path && model_open(model, path, &settings, error);
}

static bool run(const GenerateOptions *options, Error *error) {
    LoadedModel model;
    Bytes text = {0};
    Tokens prompt = {0};
    bool opened = read_prompt(options, &text, error) && open_model(&model, options, &text, error);
    bool done = opened && prompt_encode(model.tokenizer, text.data, text.size, &prompt, error) &&
                continue_prompt(&model, options, &text, &prompt, error);
    if (opened) model_close(&model);
    bytes_free(&text);
    tokens_free(&prompt);
    return done;
}

int verb_generate(int argc, char **argv) {
    GenerateOptions values = {.precision = "bf16",
                              .device = "this",
                              .max_tokens = 200,
                              .sampling = {.temperature = 0.8, .top_p = 0.95}};
    SamplingSettings *sampling = &values.sampling;
    Option options[] = {
        {.name = "checkpoint",
         .kind = OPTION_TEXT,
         .value = &values.checkpoint,
         .argument = "DIR",
         .help = "the model"},
        {.name = "prompt",
         .kind = OPTION_TEXT,
         .value = &values.prompt,
         .argument = "TEXT",
         .help = "what to continue; standard input unless given"},
        {.name = "max-tokens",
         .kind = OPTION_COUNT,
         .value = &values.max_tokens,
         .argument = "N",
         .help = "stop after N tokens",
         .minimum = 1,
         .maximum = 1e9},
        {.name = "temperature",
         .kind = OPTION_NUMBER,
         .value = &sampling->temperature,
         .argument = "T",
         .help = "0: always the most likely token; above 1: more surprising"},
        {.name = "top-k",
         .kind = OPTION_INTEGER,
         .value = &sampling->top_k,
         .argument = "K",
         .help = "draw from the K most likely tokens; 0: from all"},
        {.name = "top-p",
         .kind = OPTION_NUMBER,
         .value = &sampling->top_p,
         .argument = "P",
         .help = "draw from the most likely tokens that make up the share P",
         .minimum = 1e-9,
         .maximum = 1},
        {.name = "min-p",
         .kind = OPTION_NUMBER,
         .value = &sampling->min_p,
         .argument = "P",
         .help = "draw from tokens at least P times as likely as the most likely",
         .minimum = 0,
         .maximum = 1},
        {.name = "seed",
         .kind = OPTION_INTEGER,
         .value = &values.seed,
         .argument = "N",
         .help = "another seed gives another text"},
        {.name = "stop",
         .kind = OPTION_TEXT,
         .value = &values.stop,
         .argument = "TEXT",
         .help = "end before this text"},
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
    int words;
    ParseResult parsed = options_parse(&command, options, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    bool good = values.checkpoint || fail(&error, "--checkpoint DIR is needed");
    if (good && words)
        good = fail(&error, "unexpected '%s'; quote the prompt: --prompt 'TEXT'", argv[0]);
    if (good && values.stop && !*values.stop)
        good = fail(&error, "--stop needs a text that is not empty");
    if (!good) return command_misused(&command, &error);
    sampling->seed = (uint64_t)values.seed;
    return run(&values, &error) ? EXIT_SUCCESS : command_failed(&error);
}

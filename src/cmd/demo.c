/* hearth demo: the whole road on a small corpus, made of the commands that anyone can type. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/chart.h"
#include "cmd/compress.h"
#include "cmd/held_out.h"
#include "cmd/kjv.h"
#include "cmd/options.h"
#include "cmd/stage.h"
#include "cmd/verbs.h"
#include "data/reader.h"
#include "train/interrupt.h"

static const Command command = {
    .name = "demo",
    .summary = "The whole road from text to samples, in about two minutes on two processor cores.",
    .usage = "hearth demo [--text FILE...] [options]",
    .details = "Trains a tokenizer and a llama of a few million parameters with the commands that "
               "it shows, then\n"
               "compares the model's bits per byte with gzip's and xz's on text that was held out. "
               "The text is the\n"
               "King James Bible, from Debian's package bible-kjv, unless --text names some of "
               "yours: .txt or\n"
               ".jsonl, also .gz or .zst, or .parquet, directories or patterns; 1 MB or more is "
               "best.\n\n"
               "Example:\n"
               "  hearth demo\n"
               "  hearth demo --text books/*.txt --seconds 300",
};

/* Chosen so that in two minutes two cores see the default text about once. */
#define MODEL \
    "--model", "llama-15m", "--layers", "4", "--dim", "256", "--heads", "4", "--kv-heads", "4", \
        "--ffn", "704", "--seq-len", "256", "--batch-tokens", "4096"
enum { BATCH_TOKENS = 4096, VOCAB_MOST = 4096, EPOCHS_MOST = 6, STEPS_LEAST = 20, SAMPLES = 3 };

/* What a step's arithmetic leaves of the time: tokenizer, dataset, start, evaluation, samples. */
static const double training_share = 0.85;

typedef struct Demo {
    const char *directory; /* where everything goes */
    char numbered[32];
    double seconds;      /* for everything */
    const char **inputs; /* ends with NULL */
    int input_count;
    bool own_text; /* --text */
    char *text, *tokenizer, *data;
    int64_t train_tokens, steps;
    double tokens_per_s, model_bpb, gzip_bpb, xz_bpb;
    Bytes held_out;
} Demo;

static const char *const no_inputs[] = {NULL};

/* ---- The text ---- */

/* A directory that is not there yet: --run-dir, or the first of runs/demo, runs/demo-2, ... */
static bool make_directory(Demo *demo, Error *error) {
    if (!demo->directory) {
        strcpy(demo->numbered, "runs/demo");
        for (int i = 2; path_exists(demo->numbered); i++)
            snprintf(demo->numbered, sizeof demo->numbered, "runs/demo-%d", i);
        demo->directory = demo->numbered;
    }
    if (path_exists(demo->directory))
        return fail(error, "%s is there already; remove it, or give another --run-dir",
                    demo->directory);
    demo->text = path_join(demo->directory, "text.txt", error);
    demo->tokenizer = path_join(demo->directory, "tokenizer", error);
    demo->data = path_join(demo->directory, "data", error);
    return demo->text && demo->tokenizer && demo->data && directory_create(demo->directory, error);
}

static bool find_text(Demo *demo, Error *error) {
    if (demo->own_text) return true;
    demo->inputs[0] = demo->text;
    log_line("The text: the King James Bible, 1611, in the public domain.");
    return kjv_write(demo->text, error);
}

/* ---- The stages ---- */

static bool train_tokenizer(Demo *demo, Error *error) {
    Reader *reader = reader_open(demo->inputs, demo->input_count, &(ReaderSettings){0}, error);
    if (!reader) return false;
    int64_t vocab = (int64_t)(reader_total(reader) / 1000);
    reader_free(reader);
    if (vocab > VOCAB_MOST || !vocab) vocab = VOCAB_MOST;
    if (vocab < 300) vocab = 300;
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)vocab);
    const char *words[] = {"tokenizer", "train", "--vocab", number, "--out", demo->tokenizer, NULL};
    json_t *result = stage_run(verb_tokenizer, words, demo->inputs, error);
    json_decref(result);
    return result != NULL;
}

static bool build_dataset(Demo *demo, Error *error) {
    const char *words[] = {"data",           "build", "--tokenizer",
                           demo->tokenizer,  "--out", demo->data,
                           "--val-fraction", "0.1",   demo->own_text ? NULL : "--split-on",
                           "\\n\\n",         NULL};
    json_t *result = stage_run(verb_data, words, demo->inputs, error);
    const json_t *train = json_object_get(result, "train");
    bool done =
        result && json_get_integer(train, "tokens", 1, INT64_MAX, &demo->train_tokens, error);
    json_decref(result);
    return done;
}

/* As many steps as the plan says this machine makes in the time, but not so many that the model learns
 * the text by heart. */
static bool choose_steps(Demo *demo, Error *error) {
    const char *words[] = {"plan", MODEL, "--data", demo->data, NULL};
    double step_ms;
    json_t *result = stage_run(verb_plan, words, no_inputs, error);
    bool done = result && json_get_number(result, "step_ms", &step_ms, error);
    json_decref(result);
    if (!done) return false;
    int64_t most = EPOCHS_MOST * demo->train_tokens / BATCH_TOKENS;
    demo->steps = (int64_t)(1e3 * training_share * demo->seconds / step_ms);
    if (demo->steps > most) demo->steps = most;
    if (demo->steps < STEPS_LEAST) demo->steps = STEPS_LEAST;
    return true;
}

static bool train_model(Demo *demo, Error *error) {
    char steps[32];
    snprintf(steps, sizeof steps, "%lld", (long long)demo->steps);
    const char *words[] = {"train",   "--data", demo->data, "--run-dir",    demo->directory,
                           MODEL,     "--lr",   "3e-3",     "--eval-every", "0",
                           "--steps", steps,    NULL};
    json_t *result = stage_run(verb_train, words, no_inputs, error);
    bool interrupted = false;
    bool done = result && json_get_bool(result, "interrupted", &interrupted, error) &&
                json_get_number(result, "tokens_per_s", &demo->tokens_per_s, error);
    json_decref(result);
    if (done && interrupted)
        return fail(error, "stopped; 'hearth train --run-dir %s --resume' goes on",
                    demo->directory);
    return done;
}

/* ---- What came of it ---- */

static bool read_losses(const char *log, double **losses, size_t *count, Error *error) {
    Bytes text = {0};
    size_t capacity = 0;
    bool good = file_read(log, 1 << 30, &text, error);
    for (char *line = good ? strtok((char *)text.data, "\n") : NULL; good && line;
         line = strtok(NULL, "\n")) {
        json_t *entry = json_read_bytes(log, line, strlen(line), error);
        const json_t *loss = json_object_get(entry, "loss");
        good = entry && reserve(losses, &capacity, *count + 1, sizeof **losses, error);
        if (good && json_is_number(loss)) (*losses)[(*count)++] = json_number_value(loss);
        json_decref(entry);
    }
    bytes_free(&text);
    return good;
}

static bool draw_curve(const Demo *demo, Error *error) {
    enum { WIDTH = 64, HEIGHT = 10 };
    double *losses = NULL;
    size_t count = 0;
    char *log = path_join(demo->directory, "log.jsonl", error);
    bool done = log && read_losses(log, &losses, &count, error);
    if (done) {
        fprintf(stderr, "\nLoss over %zu steps:\n", count);
        chart_draw(stderr, losses, count, WIDTH, HEIGHT);
    }
    free(losses);
    free(log);
    return done;
}

static double bits_per_byte(size_t compressed, size_t size) {
    return 8 * (double)compressed / (double)size;
}

static bool measure(Demo *demo, Error *error) {
    const char *words[] = {"eval", "--checkpoint", demo->directory, "--data", demo->data, NULL};
    json_t *result = stage_run(verb_eval, words, no_inputs, error);
    bool done = result && json_get_number(result, "bpb", &demo->model_bpb, error) &&
                held_out_text(demo->data, &demo->held_out, error);
    json_decref(result);
    size_t size = demo->held_out.size;
    size_t gzip = done ? gzip_size(demo->held_out.data, size, error) : 0;
    size_t xz = gzip ? xz_size(demo->held_out.data, size, error) : 0;
    demo->gzip_bpb = bits_per_byte(gzip, size);
    demo->xz_bpb = bits_per_byte(xz, size);
    return xz != 0;
}

static void print_bar(const char *name, double bpb, double longest) {
    enum { WIDTH = 40 };
    printf("  %-12s%6.3f  ", name, bpb);
    for (int i = 0; i < (int)lround(WIDTH * bpb / longest); i++) fputs("█", stdout);
    putchar('\n');
}

static void print_comparison(const Demo *demo) {
    double longest = fmax(demo->gzip_bpb, demo->model_bpb);
    printf("\nBits per byte of %zu bytes of text that the model has not seen:\n",
           demo->held_out.size);
    print_bar("gzip -9", demo->gzip_bpb, longest);
    print_bar("xz -9", demo->xz_bpb, longest);
    print_bar("this model", demo->model_bpb, longest);
    fflush(stdout);
}

/* The first words of a line of the held-out text, from the line after `part` of it. */
static bool choose_prompt(const Demo *demo, double part, char prompt[64]) {
    const char *text = (const char *)demo->held_out.data, *end = text + demo->held_out.size;
    const char *start = text + (size_t)(part * (double)demo->held_out.size);
    const char *line = memchr(start, '\n', (size_t)(end - start));
    while (line && line < end && *line == '\n') line++;
    if (!line || line == end) line = start;
    int length = 0, words = 0;
    while (line + length < end && length < 63 && (unsigned char)line[length] >= ' ') {
        if (line[length] == ' ' && ++words == 4) break;
        prompt[length] = line[length];
        length++;
    }
    prompt[length] = '\0';
    return length > 0;
}

static bool print_samples(const Demo *demo, Error *error) {
    bool done = true;
    for (int i = 0; done && i < SAMPLES; i++) {
        char prompt[64];
        choose_prompt(demo, (i + 0.5) / SAMPLES, prompt);
        const char *words[] = {
            "generate", "--checkpoint", demo->directory, "--prompt", prompt, "--max-tokens", "80",
            NULL};
        json_t *result = stage_run(verb_generate, words, no_inputs, error);
        const char *text = result ? json_get_string(result, "text", error) : NULL;
        done = text != NULL;
        if (done && !options_json()) printf("%s%s\n", prompt, text);
        fflush(stdout);
        json_decref(result);
    }
    return done;
}

static void print_next(const Demo *demo) {
    const char *run = demo->directory;
    printf("\nWhat to type next:\n"
           "  hearth generate --checkpoint %s --prompt 'And it came to pass' --temperature 0.7\n"
           "  hearth demo --text YOUR_TEXT.txt --run-dir runs/mine\n"
           "  hearth train --help\n"
           "The checkpoint in %s/checkpoints loads in transformers as it is.\n",
           run, run);
}

static void print_json(const Demo *demo, double seconds) {
    printf("{\"val_bpb\": %.4f, \"gzip_bpb\": %.4f, \"xz_bpb\": %.4f, \"tokens_per_s\": %.1f, "
           "\"seconds\": %.1f}\n",
           demo->model_bpb, demo->gzip_bpb, demo->xz_bpb, demo->tokens_per_s, seconds);
}

static bool run(Demo *demo, Error *error) {
    double started = seconds_now();
    if (!make_directory(demo, error) || !find_text(demo, error) || !train_tokenizer(demo, error) ||
        !build_dataset(demo, error) || !choose_steps(demo, error) || !train_model(demo, error) ||
        !draw_curve(demo, error) || !measure(demo, error))
        return false;
    if (!options_json()) print_comparison(demo);
    if (!print_samples(demo, error)) return false;
    if (options_json())
        print_json(demo, seconds_now() - started);
    else
        print_next(demo);
    return true;
}

int verb_demo(int argc, char **argv) {
    const char *text = NULL;
    Demo demo = {.seconds = 120};
    Option options[] = {
        {.name = "text",
         .kind = OPTION_TEXT,
         .value = &text,
         .argument = "FILE...",
         .help = "train on these instead"},
        {.name = "seconds",
         .kind = OPTION_DURATION,
         .value = &demo.seconds,
         .argument = "TIME",
         .help = "how long it may take, about",
         .minimum = 1,
         .maximum = 1e6},
        {.name = "run-dir",
         .kind = OPTION_TEXT,
         .value = &demo.directory,
         .argument = "DIR",
         .help = "where everything goes (runs/demo, or the next number)"},
        {0},
    };
    Error error;
    int words;
    ParseResult parsed = options_parse(&command, options, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words && !text) {
        fail(&error, "name your text with --text %s", argv[0]);
        return command_misused(&command, &error);
    }
    demo.inputs = allocate((size_t)words + 2, sizeof *demo.inputs, &error);
    bool done = demo.inputs != NULL;
    if (done) {
        demo.own_text = text != NULL;
        demo.inputs[0] = text;
        demo.input_count = words + 1;
        for (int i = 0; i < words; i++) demo.inputs[i + 1] = argv[i];
        interrupt_install();
        done = run(&demo, &error);
    }
    free(demo.inputs);
    free(demo.text);
    free(demo.tokenizer);
    free(demo.data);
    bytes_free(&demo.held_out);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

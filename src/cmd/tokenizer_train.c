/* hearth tokenizer train */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/threads.h"
#include "base/units.h"
#include "cmd/options.h"
#include "cmd/tokenizer.h"
#include "data/reader.h"
#include "text/splitter.h"
#include "text/trainer.h"

static const Command train_command = {
    .name = "tokenizer train",
    .summary = "Learn a byte-level BPE tokenizer from text.",
    .usage = "hearth tokenizer train --vocab N --out DIR [options] FILES...",
    .details =
        "FILES are .txt or .jsonl, also .gz or .zst, .parquet, directories, glob patterns, or -\n"
        "for stdin.\n"
        "Documents are JSON lines, the rows of Parquet and, with --split-on, the parts of text\n"
        "files; a text file beside JSON lines or Parquet is one. Text files alone are one text,\n"
        "as 'cat' would join them.\n"
        "The same text gives the same tokenizer whatever the number of files or threads.\n"
        "DIR gets tokenizer.json and tokenizer_config.json, which transformers' AutoTokenizer\n"
        "reads too.\n"
        "\n"
        "--max-doc-chars crops documents, and the one that goes beyond --max-chars in all is\n"
        "the last; a text without documents is cropped to --max-chars. With --pattern nanochat\n"
        "the limits are 10,000 and 2B unless given; 0 is none.\n"
        "\n"
        "Example:\n"
        "  hearth tokenizer train --vocab 32768 --pattern gpt4 --out tokenizer corpus.txt\n"
        "  hearth tokenizer eval --tokenizer tokenizer held-out.txt",
};

typedef struct TrainOptions {
    int64_t vocab, threads;
    int64_t document_characters, characters; /* 0 = no limit, -1 = the pattern's */
    const char *pattern, *out, *specials, *field, *split_on;
} TrainOptions;

/* Splits "a,b,c" in place. */
static size_t split_list(char *list, const char **items, size_t most) {
    size_t count = 0;
    for (char *item = strtok(list, ","); item && count < most; item = strtok(NULL, ","))
        items[count++] = item;
    return count;
}

/* Files that are one text have no documents to crop; the text itself is cropped to the total. */
static bool set_limits(Trainer *trainer, const TrainOptions *options, bool joined, Error *error) {
    TrainerLimits limits = trainer_default_limits(options->pattern);
    int64_t document = options->document_characters, total = options->characters;
    if (joined && document > 0)
        return fail(error,
                    "--max-doc-chars %lld crops documents, and plain text files are none; say with "
                    "--split-on what stands between those in the files, or leave the option out",
                    (long long)document);
    if (document >= 0) limits.text = document ? document : INT64_MAX;
    if (total >= 0) limits.total = total ? total : INT64_MAX;
    if (joined) limits.text = limits.total;
    trainer_limit(trainer, limits);
    return true;
}

/* `bytes` were read. */
static void report_limits(const Trainer *trainer, bool joined, int64_t bytes) {
    char used[32], all[32];
    format_bytes(used, trainer_bytes(trainer));
    if (!joined && trainer_bytes(trainer) < bytes / 2)
        log_warning("more than half of the text is left out: %s of %s are used, as documents are "
                    "cropped to --max-doc-chars",
                    used, format_bytes(all, bytes));
    else if (trainer_is_cropped(trainer) || trainer_is_full(trainer))
        log_line("%s of the text are used: --max-doc-chars and --max-chars say how much", used);
}

static bool read_text(Trainer *trainer, Reader *reader, bool joined, Error *error) {
    Progress progress = progress_start("counting words", reader_total(reader));
    Piece piece;
    ReadResult result;
    bool done = true;
    int64_t bytes = 0;
    while ((result = reader_next(reader, &piece, error)) == READ_PIECE) {
        if (piece.begins && !joined) done = trainer_end_text(trainer, error);
        if (!done || trainer_is_full(trainer)) break;
        if (!(done = trainer_add(trainer, piece.text, piece.size, error))) break;
        bytes += (int64_t)piece.size;
        if (joined && trainer_is_cropped(trainer)) break;
        progress_update(&progress, reader_consumed(reader));
    }
    progress_end(&progress);
    if (done && result != READ_FAILED) report_limits(trainer, joined, bytes);
    return done && result != READ_FAILED;
}

static void show_merges(void *context, uint32_t done, uint32_t total) {
    Progress *progress = context;
    progress->total = total;
    progress_update(progress, done);
}

/* A word of letters alone is a misspelt name, not an expression that anyone means. */
static bool check_pattern(const char *pattern, Error *error) {
    bool plain = true;
    for (const char *c = pattern; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || *c == '_');
    if (!plain || pattern_expression(pattern) != pattern) return true;
    return fail(
        error,
        "--pattern '%s' is not known: give gpt2, gpt4, cl100k, nanochat, o200k or a regular "
        "expression",
        pattern);
}

static Tokenizer *train(const TrainOptions *options, char **inputs, int count, int64_t *bytes,
                        Error *error) {
    ReaderSettings settings = {.field = options->field, .split_on = options->split_on};
    const char **specials, *listed[64];
    const char *const *defaults;
    size_t special_count = trainer_default_specials(options->pattern, &defaults);
    char *list = options->specials ? copy_string(options->specials, error) : NULL;
    if (options->specials && !list) return NULL;
    if (list) special_count = split_list(list, listed, sizeof listed / sizeof *listed);
    specials = listed;

    Trainer *trainer =
        check_pattern(options->pattern, error) ? trainer_open(options->pattern, error) : NULL;
    Reader *reader =
        trainer ? reader_open((const char *const *)inputs, count, &settings, error) : NULL;
    Tokenizer *tokenizer = NULL;
    bool joined = reader && !reader_has_documents(reader);
    if (reader && set_limits(trainer, options, joined, error) &&
        read_text(trainer, reader, joined, error)) {
        *bytes = trainer_bytes(trainer);
        Progress progress = progress_start("learning merges", 0);
        tokenizer = trainer_finish(trainer, (uint32_t)options->vocab, list ? specials : defaults,
                                   special_count, show_merges, &progress, error);
        progress_end(&progress);
    }
    reader_free(reader);
    trainer_free(trainer);
    free(list);
    return tokenizer;
}

static void report_training(const Tokenizer *tokenizer, const char *out, int64_t bytes,
                            double seconds) {
    char hash[SHA256_TEXT], size[32], time[32];
    tokenizer_hash(tokenizer, hash);
    uint32_t vocab = tokenizer_vocab_size(tokenizer);
    if (options_json())
        printf("{\"vocab_size\": %u, \"bytes\": %lld, \"seconds\": %.3f, \"hash\": \"%s\"}\n",
               vocab, (long long)bytes, seconds, hash);
    else
        printf("%s/tokenizer.json: %u tokens from %s of text in %s, hash %.12s\n", out, vocab,
               format_bytes(size, bytes), format_duration(time, seconds), hash);
}

int tokenizer_train(int argc, char **argv) {
    TrainOptions values = {.vocab = 32768,
                           .threads = thread_count(),
                           .document_characters = -1,
                           .characters = -1,
                           .pattern = "gpt4"};
    Option options[] = {
        {.name = "vocab",
         .kind = OPTION_COUNT,
         .value = &values.vocab,
         .argument = "N",
         .help = "size of the vocabulary: 256 bytes, the merges and the special tokens",
         .minimum = 257,
         .maximum = 1 << 24},
        {.name = "pattern",
         .kind = OPTION_TEXT,
         .value = &values.pattern,
         .argument = "gpt2|gpt4|cl100k|nanochat|o200k|REGEX",
         .help = "how text is split before merging"},
        {.name = "out",
         .kind = OPTION_TEXT,
         .value = &values.out,
         .argument = "DIR",
         .help = "where to write the tokenizer"},
        {.name = "specials",
         .kind = OPTION_TEXT,
         .value = &values.specials,
         .argument = "LIST",
         .help = "special tokens, with commas between; default <|endoftext|>, or nanochat's nine"},
        {.name = "field",
         .kind = OPTION_TEXT,
         .value = &values.field,
         .argument = "NAME",
         .help = "the text of a JSON line, or the Parquet column (text)"},
        {.name = "split-on",
         .kind = OPTION_TEXT,
         .value = &values.split_on,
         .argument = "TEXT",
         .help = "what stands between documents"},
        {.name = "max-doc-chars",
         .kind = OPTION_COUNT,
         .value = &values.document_characters,
         .argument = "N",
         .help = "crop documents to N characters; default 0, all of them, or nanochat's 10000"},
        {.name = "max-chars",
         .kind = OPTION_COUNT,
         .value = &values.characters,
         .argument = "N",
         .help = "stop after N characters in all; default 0, at the end, or nanochat's 2B"},
        {.name = "threads",
         .kind = OPTION_INTEGER,
         .value = &values.threads,
         .argument = "N",
         .help = "threads to count with",
         .minimum = 1,
         .maximum = 4096},
        {0},
    };
    Error error;
    int count;
    ParseResult parsed = options_parse(&train_command, options, argc, argv, &count);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!values.out || !count) {
        fail(&error, values.out ? "name the files to learn from" : "--out DIR is needed");
        return command_misused(&train_command, &error);
    }
    thread_count_set((int)values.threads);
    double started = seconds_now();
    int64_t bytes = 0;
    bool done = directory_create(values.out, &error);
    Tokenizer *tokenizer = done ? train(&values, argv, count, &bytes, &error) : NULL;
    done = tokenizer && tokenizer_save(tokenizer, values.out, &error);
    if (done) report_training(tokenizer, values.out, bytes, seconds_now() - started);
    tokenizer_free(tokenizer);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

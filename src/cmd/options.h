/* Command lines from tables: parsing, --help, --config YAML, and suggestions for what is misspelt. */
#ifndef HEARTH_CMD_OPTIONS_H
#define HEARTH_CMD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

typedef enum OptionKind {
    OPTION_FLAG,     /* bool: --name, --no-name; in YAML true or false */
    OPTION_INTEGER,  /* int64_t */
    OPTION_COUNT,    /* int64_t with K/M/B suffixes (base/units.h) */
    OPTION_BYTES,    /* int64_t with K/M/G suffixes */
    OPTION_NUMBER,   /* double */
    OPTION_DURATION, /* double, seconds */
    OPTION_TEXT,     /* const char * */
    OPTION_CHOICE,   /* const char *, one of `choices` */
} OptionKind;

typedef struct Option {
    const char *name; /* without dashes: "batch-tokens" */
    OptionKind kind;
    void *value;          /* what is set; its content before parsing is the default */
    const char *argument; /* as --help shows it: "N", "DIR"; NULL for flags */
    const char *help;
    double minimum, maximum; /* for numbers; both 0 = any value >= 0 */
    const char *choices;     /* "fp32|bf16" */
    bool given;              /* set by parsing: on the command line or in the YAML file */
} Option;

/* A subcommand. `options` ends with an entry whose name is NULL. --help, --config, --json and --quiet
 * are understood for every command; a command reads the last two through the functions below. */
typedef struct Command {
    const char *name;    /* "tokenizer train" */
    const char *summary; /* one line */
    const char *usage;   /* "hearth tokenizer train [options] FILES..." */
    const char *details; /* paragraphs and an example, shown by --help */
} Command;

typedef enum ParseResult { PARSE_RUN, PARSE_HELP_SHOWN, PARSE_WRONG } ParseResult;

/* Parses argv[1..]. Words that are not options are moved to the front of argv and counted in
 * *positional ("--" ends the options). PARSE_WRONG has printed the message and the way to --help; the
 * command then returns EXIT_USAGE. */
ParseResult options_parse(const Command *command, Option *options, int argc, char **argv,
                          int *positional);

bool options_json(void);

/* Whether an option was given; `name` must be in the table. */
bool option_given(const Option *options, const char *name);

/* Where the value of a choice stands in its list, from 0; `name` must be in the table, of that kind. */
int option_choice(const Option *options, const char *name);

/* The option whose name is the first `length` bytes, of the table or of those that every command has; or NULL. */
Option *option_find(Option *options, const char *name, size_t length);

/* Fails with what may have been meant by a name that is none; `prefix` is "--" on the command line. */
bool option_unknown(Option *options, const char *prefix, const char *name, Error *error);

/* Sets one option from text, as YAML and the command line do. */
bool option_set(Option *option, const char *text, Error *error);

/* The YAML file itself: one flat mapping of option names to scalars, each name once. What was given before
 * stays. */
bool options_read_yaml(Option *options, const char *path, Error *error);

/* Writes every option with its value in force, for config.yaml. */
void options_write_yaml(const Option *options, FILE *file);

/* A copy that stays until the process ends: what the values of options are. */
const char *text_keep(const char *text, Error *error);

/* The nearest of `candidates` (NULL-terminated) within two or three edits, or NULL. */
const char *nearest_word(const char *word, const char *const *candidates);

enum { EXIT_USAGE = 2 };

/* Prints "hearth: MESSAGE" and returns EXIT_FAILURE, or EXIT_USAGE for the second. */
int command_failed(const Error *error);
int command_misused(const Command *command, const Error *error);

#endif

/* Options in YAML: read from --config and written to a run's config.yaml. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "cmd/options.h"

/* A file on its way. */
typedef struct Reading {
    Option *options;
    const char *path;
    Option *key; /* the option whose value comes next, or NULL where a key does */
    struct Given {
        const Option *option;
        size_t line;
    } * given; /* by this file so far */
    size_t count, capacity;
} Reading;

static bool note_given(Reading *reading, const Option *option, size_t line, Error *error) {
    for (size_t i = 0; i < reading->count; i++)
        if (reading->given[i].option == option)
            return fail(error, "%s was given in line %zu already; keep one of the two",
                        option->name, reading->given[i].line);
    if (!reserve(&reading->given, &reading->capacity, reading->count + 1, sizeof *reading->given,
                 error))
        return false;
    reading->given[reading->count++] = (struct Given){option, line};
    return true;
}

/* In YAML the words of a name may be joined by underscores too. */
static bool read_key(Reading *reading, const char *text, size_t line, Error *error) {
    char name[64] = "";
    for (size_t i = 0; text[i] && i < 63; i++) name[i] = text[i] == '_' ? '-' : text[i];
    if (!strcmp(name, "config") || !strcmp(name, "help"))
        return fail(error, "%s cannot stand in a file; give --%s on the command line", name, name);
    Option *option = reading->key = option_find(reading->options, name, strlen(name));
    return option ? note_given(reading, option, line, error)
                  : option_unknown(reading->options, "", name, error);
}

static bool read_value(Reading *reading, const char *text, bool plain, Error *error) {
    Option *option = reading->key;
    reading->key = NULL;
    bool empty = plain && (!*text || !strcmp(text, "null") || !strcmp(text, "~"));
    return empty || option->given /* the command line wins */ || option_set(option, text, error);
}

/* One scalar of a flat mapping: a key, or the value of the key before it. */
static bool read_scalar(Reading *reading, const yaml_event_t *event, Error *error) {
    const char *text = (const char *)event->data.scalar.value;
    size_t line = event->start_mark.line + 1;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, done;
    if (strlen(text) != event->data.scalar.length)
        done = fail(error, "a NUL byte stands here");
    else if (reading->key)
        done = read_value(reading, text, plain, error);
    else
        done = read_key(reading, text, line, error);
    return done || fail_within(error, "%s:%zu", reading->path, line);
}

static bool read_events(Reading *reading, yaml_parser_t *parser, Error *error) {
    bool done = false, going = true, begun = false;
    int depth = 0;
    while (going) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return fail(error, "%s:%zu: %s", reading->path, parser->problem_mark.line + 1,
                        parser->problem ? parser->problem : "not valid YAML");
        if (event.type == YAML_DOCUMENT_START_EVENT) {
            going = !begun || fail(error, "%s:%zu: a second document begins; keep one",
                                   reading->path, event.start_mark.line + 1);
            begun = true;
        } else if (event.type == YAML_MAPPING_START_EVENT && depth == 0) {
            depth = 1;
        } else if (event.type == YAML_SCALAR_EVENT && depth == 1) {
            going = read_scalar(reading, &event, error);
        } else if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_ALIAS_EVENT ||
                   event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SCALAR_EVENT) {
            if (event.type != YAML_SCALAR_EVENT || event.data.scalar.length)
                going = fail(error, "%s:%zu: expected lines of 'option: value'", reading->path,
                             event.start_mark.line + 1);
        } else if (event.type == YAML_STREAM_END_EVENT) {
            done = true, going = false;
        }
        yaml_event_delete(&event);
    }
    return done;
}

bool options_read_yaml(Option *options, const char *path, Error *error) {
    FILE *file = fopen(path, "rb");
    if (!file) return fail_errno(error, "cannot open %s", path);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        fclose(file);
        return fail(error, "out of memory reading %s", path);
    }
    yaml_parser_set_input_file(&parser, file);
    Reading reading = {.options = options, .path = path};
    bool done = read_events(&reading, &parser, error);
    free(reading.given);
    yaml_parser_delete(&parser);
    fclose(file);
    return done;
}

/* The length and code of a character above ASCII that YAML does not take as it is (controls, line breaks,
 * marks); 0 when this is none. */
static size_t special_character(const unsigned char *text, unsigned *code) {
    if (text[0] == 0xc2 && text[1] < 0xa0) {
        *code = text[1];
        return 2;
    }
    if (text[0] != 0xe2 && text[0] != 0xef) return 0;
    if (!text[1] || !text[2]) return 0;
    *code = (text[0] & 15u) << 12 | (text[1] & 63u) << 6 | (text[2] & 63u);
    bool listed = *code == 0x2028 || *code == 0x2029 || *code == 0xfeff || *code >= 0xfffe;
    return listed ? 3 : 0;
}

static void write_quoted(FILE *file, const char *text) {
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        unsigned code;
        size_t length = special_character(c, &code);
        if (length) {
            fprintf(file, "\\u%04x", code);
            c += length - 1;
        } else if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 32 || *c == 127) {
            fprintf(file, "\\x%02x", *c);
        } else {
            fputc(*c, file);
        }
    }
    fputc('"', file);
}

/* A number below its own least value stands for "not given". */
static bool is_unset(const Option *option) {
    if (option->minimum <= 0) return false;
    if (option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION)
        return *(const double *)option->value < option->minimum;
    bool whole = option->kind == OPTION_INTEGER || option->kind == OPTION_COUNT ||
                 option->kind == OPTION_BYTES;
    return whole && (double)*(const int64_t *)option->value < option->minimum;
}

void options_write_yaml(const Option *options, FILE *file) {
    for (const Option *option = options; option->name; option++) {
        const void *value = option->value;
        fprintf(file, "%s: ", option->name);
        if (is_unset(option)) {
            /* an empty value leaves the default */
        } else if (option->kind == OPTION_FLAG) {
            fputs(*(const bool *)value ? "true" : "false", file);
        } else if (option->kind == OPTION_TEXT || option->kind == OPTION_CHOICE) {
            const char *text = *(const char *const *)value;
            if (text) write_quoted(file, text);
        } else if (option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION) {
            fprintf(file, "%.17g", *(const double *)value);
        } else {
            fprintf(file, "%lld", (long long)*(const int64_t *)value);
        }
        fputc('\n', file);
    }
}

#include "cmd/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "train/interrupt.h"

static bool needs_quotes(const char *word) {
    return !*word || strpbrk(word, " \t\n\\'\"$`*?[(){}<>|&;#~!") != NULL;
}

/* A word as a shell takes it, after a space. */
static bool append_word(Bytes *line, const char *word, Error *error) {
    bool quoted = needs_quotes(word),
         good = bytes_append(line, quoted ? " '" : " ", quoted ? 2 : 1, error);
    for (; good && *word; word++)
        good = bytes_append(line, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1, error);
    return good && (!quoted || bytes_append(line, "'", 1, error));
}

static void print_command(char **argv) {
    Bytes line = {0};
    Error error;
    bool good = true;
    for (; good && *argv; argv++) good = append_word(&line, *argv, &error);
    if (good) log_line("\n$ hearth%.*s", (int)line.size, (const char *)line.data);
    bytes_free(&line);
}

/* In the child: never returns. */
static void run_verb(int (*verb)(int, char **), int argc, char **argv, int out) {
    interrupt_remove();
    if (dup2(out, STDOUT_FILENO) < 0) _exit(EXIT_FAILURE);
    close(out);
    exit(verb(argc, argv));
}

static bool read_all(int pipe, Bytes *out, Error *error) {
    uint8_t piece[4096];
    for (;;) {
        ssize_t size = read(pipe, piece, sizeof piece);
        if (size == 0) return true;
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return fail_errno(error, "cannot read what a command prints");
        if (!bytes_append(out, piece, (size_t)size, error)) return false;
    }
}

static bool wait_for(pid_t child, const char *name, Error *error) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return fail_errno(error, "cannot wait for 'hearth %s'", name);
    if (WIFSIGNALED(status))
        return fail(error, "'hearth %s' was ended by signal %d", name, WTERMSIG(status));
    return WEXITSTATUS(status) == 0 || fail(error, "stopped, since 'hearth %s' failed", name);
}

/* Runs the verb with the child's stdout in *out. */
static bool run_child(int (*verb)(int, char **), int argc, char **argv, Bytes *out, Error *error) {
    int ends[2];
    fflush(NULL); /* or the child would print what is buffered, too */
    if (pipe(ends)) return fail_errno(error, "cannot make a pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_verb(verb, argc, argv, ends[1]);
    }
    bool good = child > 0 || fail_errno(error, "cannot start a process");
    close(ends[1]);
    good = good && read_all(ends[0], out, error);
    close(ends[0]);
    if (child > 0) good = wait_for(child, argv[0], error) && good;
    return good;
}

json_t *stage_run(int (*verb)(int, char **), const char *const *words, const char *const *inputs,
                  Error *error) {
    size_t count = 0, input_count = 0;
    while (words[count]) count++;
    while (inputs[input_count]) input_count++;
    char **argv = allocate(count + input_count + 2, sizeof *argv, error);
    if (!argv) return NULL;
    memcpy(argv, words, count * sizeof *argv);
    memcpy(argv + count, inputs, input_count * sizeof *argv);
    print_command(argv);
    count += input_count;
    argv[count] = (char[]){"--json"};
    Bytes out = {0};
    json_t *result = NULL;
    if (run_child(verb, (int)count + 1, argv, &out, error))
        result = json_read_bytes(words[0], out.data, out.size, error);
    bytes_free(&out);
    free(argv);
    return result;
}

#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void do_or_end(int result, const char *call, int line) {
    if (!result) return;
    fprintf(stderr, "line %d: %s gave %d\n", line, call, result);
    _exit(CALL_FAILED);
}

bool fails_with(int result, int error, const char *call, int line) {
    if (result != error)
        fprintf(stderr, "line %d: %s gave %d, not %d\n", line, call, result, error);
    return result == error;
}

/* The layout of image.cpp's Header and Part, written down once more. */
void *make_image(int kind, unsigned architecture, uint64_t flags) {
    const char elf[] = "\177ELF\0.text.driver_probe_add\0", ptx[] = ".entry driver_probe_add(";
    const char *code = kind == PART_ELF ? elf : ptx;
    uint64_t code_bytes = 64, part_bytes = 64 + code_bytes;
    unsigned char *image = calloc(1, 16 + (size_t)part_bytes);
    uint32_t magic = 0xba55ed50, header_bytes = 64;
    uint16_t version = 1, start = 16, short_kind = (uint16_t)kind;
    memcpy(image, &magic, 4);
    memcpy(image + 4, &version, 2);
    memcpy(image + 6, &start, 2);
    memcpy(image + 8, &part_bytes, 8);
    unsigned char *part = image + start;
    memcpy(part, &short_kind, 2);
    memcpy(part + 4, &header_bytes, 4);
    memcpy(part + 8, &code_bytes, 8);
    memcpy(part + 28, &architecture, 4);
    memcpy(part + 40, &flags, 8);
    memcpy(part + 64, code, kind == PART_ELF ? sizeof elf : sizeof ptx);
    return image;
}

static void rig_open(Rig *rig) {
    Error error;
    if (!cuda_driver_open(&rig->cuda, &error) || !cublaslt_open(&rig->cublaslt, &error)) {
        fprintf(stderr, "%s\n", error.message);
        _exit(CALL_FAILED);
    }
    DO(rig->cuda.init(0));
    DO(rig->cuda.context_retain(&rig->context, 0));
    DO(rig->cuda.context_set(rig->context));
    void *image = make_image(PART_PTX, 80, 0); /* any chip's */
    DO(rig->cuda.module_load(&rig->module, image));
    free(image);
    DO(rig->cuda.module_function(&rig->add, rig->module, "driver_probe_add"));
    DO(rig->cuda.stream_create(&rig->stream, CU_STREAM_NON_BLOCKING));
    DO(rig->cuda.stream_create(&rig->other, CU_STREAM_NON_BLOCKING));
}

static void rig_close(Rig *rig) {
    DO(rig->cuda.stream_destroy(rig->stream));
    DO(rig->cuda.stream_destroy(rig->other));
    DO(rig->cuda.module_unload(rig->module));
    DO(rig->cuda.context_release(0));
}

static void set_environment(const char *environment) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", environment ? environment : "");
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

/* The child's side; does not return. */
static void live(Scenario *scenario, const char *environment, int text) {
    set_environment(environment);
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
    dup2(text, STDERR_FILENO);
    Rig rig = {0};
    rig_open(&rig);
    bool right = scenario(&rig);
    if (right) rig_close(&rig);
    _exit(right ? RIGHT : WRONG);
}

Outcome run_scenario(Scenario *scenario, const char *environment) {
    Outcome outcome = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) live(scenario, environment, ends[1]);
    close(ends[1]);
    size_t length = 0;
    ssize_t more;
    while ((more = read(ends[0], outcome.text + length, sizeof outcome.text - 1 - length)) > 0)
        length += (size_t)more;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    outcome.ending = WIFEXITED(status) && WEXITSTATUS(status) <= CALL_FAILED
                         ? (Ending)WEXITSTATUS(status)
                         : DIED;
    return outcome;
}

void expect_in(Scenario *scenario, const char *environment, Ending ending, const char *text) {
    static const char *const names[] = {"right", "wrong", "a call failed", "died"};
    Outcome outcome = run_scenario(scenario, environment);
    if (outcome.ending != ending || (text && !strstr(outcome.text, text)))
        fail_msg("ended \"%s\", not \"%s\" with '%s':\n%s", names[outcome.ending], names[ending],
                 text ? text : "", outcome.text);
}

void expect(Scenario *scenario, Ending ending, const char *text) {
    expect_in(scenario, NULL, ending, text);
}

int wrong_seeds(Scenario *scenario, int count) {
    int wrong = 0;
    for (int seed = 1; seed <= count; seed++) {
        char environment[64];
        snprintf(environment, sizeof environment, "TEST_GPU_SEED=%d", seed);
        Outcome outcome = run_scenario(scenario, environment);
        if (outcome.ending > WRONG) fail_msg("seed %d: %s", seed, outcome.text);
        wrong += outcome.ending == WRONG;
    }
    return wrong;
}

void queue_add(Rig *rig, CUstream stream, CUdeviceptr out, CUdeviceptr in, float term,
               int64_t count) {
    void *arguments[] = {&out, &in, &term, &count};
    DO(rig->cuda.launch(rig->add, (unsigned)((count + 31) / 32), 1, 1, 32, 1, 1, 0, stream,
                        arguments, NULL));
}

CUdeviceptr device_memory(Rig *rig, size_t bytes) {
    CUdeviceptr address;
    DO(rig->cuda.allocate(&address, bytes));
    return address;
}

float *pinned_memory(Rig *rig, size_t bytes) {
    void *memory;
    DO(rig->cuda.allocate_host(&memory, bytes, 0));
    return memory;
}

#include "train/checkpoint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TOKENIZER_BYTES_MAX = 256 << 20, JSON_BYTES_MAX = 16 << 20 };

static const char model_file[] = "model.safetensors", optimizer_file[] = "optimizer.safetensors";
static const char config_file[] = "config.json", state_file[] = "train_state.json";
static const char manifest_file[] = "manifest.json";

char *checkpoint_name(char out[CHECKPOINT_NAME], int64_t step) {
    snprintf(out, CHECKPOINT_NAME, "step-%08lld", (long long)step);
    return out;
}

int64_t checkpoint_step(const char *name) {
    char again[CHECKPOINT_NAME];
    if (strncmp(name, "step-", 5) != 0) return -1;
    int64_t step = strtoll(name + 5, NULL, 10);
    return step >= 0 && strcmp(name, checkpoint_name(again, step)) == 0 ? step : -1;
}

/* ---- Writing ---- */

/* A checkpoint under way: its temporary directory, and the manifest's table of files so far. */
typedef struct Draft {
    char *directory;
    json_t *files;
} Draft;

static bool record(Draft *draft, const char *name, size_t bytes, const char *sha256, Error *error) {
    json_t *entry = json_pack("{s:I, s:s}", "bytes", (json_int_t)bytes, "sha256", sha256);
    if (json_object_set_new(draft->files, name, entry) == 0) return true;
    return fail(error, "out of memory for the manifest of %s", draft->directory);
}

static bool write_bytes(Draft *draft, const char *name, const void *data, size_t size,
                        Error *error) {
    char sha256[SHA256_TEXT];
    char *path = path_join(draft->directory, name, error);
    bool done = path && file_write(path, data, size, error);
    free(path);
    if (!done) return false;
    sha256_bytes(data, size, sha256);
    return record(draft, name, size, sha256, error);
}

static bool write_json(Draft *draft, const char *name, const json_t *value, Error *error) {
    Bytes text = {0};
    bool done = json_to_text(&text, value, JSON_INDENT(2), error) &&
                bytes_append(&text, "\n", 1, error) &&
                write_bytes(draft, name, text.data, text.size, error);
    bytes_free(&text);
    return done;
}

static bool write_tensors(Draft *draft, const char *name, const Tensor *tensors, int count,
                          Error *error) {
    static const char *const metadata[] = {"format", "pt", NULL};
    char sha256[SHA256_TEXT];
    char *path = path_join(draft->directory, name, error);
    struct stat status = {0};
    bool done = path && safetensors_write(path, tensors, count, metadata, sha256, error);
    if (done && stat(path, &status) != 0)
        done = fail_errno(error, "cannot read the size of %s", path);
    free(path);
    return done && record(draft, name, (size_t)status.st_size, sha256, error);
}

/* A file that is not there is left out: a tokenizer may do without tokenizer_config.json. */
static bool copy_tokenizer_file(Draft *draft, const char *source, const char *name, Error *error) {
    Bytes bytes = {0};
    char *path = path_join(source, name, error);
    bool done = path != NULL;
    if (done && path_exists(path))
        done = file_read(path, TOKENIZER_BYTES_MAX, &bytes, error) &&
               write_bytes(draft, name, bytes.data, bytes.size, error);
    bytes_free(&bytes);
    free(path);
    return done;
}

static bool write_files(Draft *draft, const CheckpointContents *contents, Error *error) {
    const char *source = contents->tokenizer;
    return write_json(draft, config_file, contents->config, error) &&
           (!contents->generation ||
            write_json(draft, "generation_config.json", contents->generation, error)) &&
           (!source || (copy_tokenizer_file(draft, source, "tokenizer.json", error) &&
                        copy_tokenizer_file(draft, source, "tokenizer_config.json", error))) &&
           write_tensors(draft, model_file, contents->model, contents->model_count, error) &&
           write_tensors(draft, optimizer_file, contents->optimizer, contents->optimizer_count,
                         error) &&
           write_json(draft, state_file, contents->state, error);
}

static bool write_manifest(Draft *draft, Error *error) {
    json_t *manifest = json_pack("{s:i, s:O}", "version", 1, "files", draft->files);
    char *path = path_join(draft->directory, manifest_file, error);
    bool done = path && (manifest ? json_write_file(path, manifest, error)
                                  : fail(error, "out of memory for %s", path));
    free(path);
    json_decref(manifest);
    return done && directory_sync(draft->directory, error);
}

static bool write_draft(Draft *draft, const CheckpointContents *contents, Error *error) {
    if (!draft->files) return fail(error, "out of memory for the manifest");
    return directory_remove(draft->directory, error) && directory_create(draft->directory, error) &&
           write_files(draft, contents, error) && write_manifest(draft, error);
}

static bool publish(const Draft *draft, const char *checkpoints, const char *path, Error *error) {
    if (!directory_remove(path, error)) return false; /* a damaged one of that step */
    if (rename(draft->directory, path) != 0)
        return fail_errno(error, "cannot rename %s to %s", draft->directory, path);
    return directory_sync(checkpoints, error);
}

bool checkpoint_write(const char *checkpoints, const CheckpointContents *contents, Error *error) {
    char name[CHECKPOINT_NAME], temporary[CHECKPOINT_NAME + 8];
    Error ignored;
    if (contents->step < 0 || contents->step > CHECKPOINT_STEP_MAX)
        return fail(error, "step %lld is beyond the %d that a checkpoint's name can hold",
                    (long long)contents->step, CHECKPOINT_STEP_MAX);
    checkpoint_name(name, contents->step);
    snprintf(temporary, sizeof temporary, ".%s.tmp", name);
    char *path = path_join(checkpoints, name, error);
    if (!path) return false;
    bool done = path_exists(path) && checkpoint_verify(path, true, &ignored);
    Draft draft = {0};
    if (!done && (draft.directory = path_join(checkpoints, temporary, error))) {
        draft.files = json_object();
        done = write_draft(&draft, contents, error) && publish(&draft, checkpoints, path, error);
        if (!done) directory_remove(draft.directory, &ignored);
    }
    json_decref(draft.files);
    free(draft.directory);
    free(path);
    return done || fail_within(error, "checkpoint of step %lld", (long long)contents->step);
}

/* ---- Reading ---- */

static json_t *read_json(const char *directory, const char *name, Error *error) {
    char *path = path_join(directory, name, error);
    json_t *json = path ? json_read_file(path, JSON_BYTES_MAX, error) : NULL;
    free(path);
    return json;
}

static bool exists_in(const char *directory, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length < (int)sizeof path && path_exists(path);
}

static bool verify_file(const char *path, const json_t *entry, bool checksums, Error *error) {
    int64_t bytes;
    struct stat status;
    char actual[SHA256_TEXT];
    const char *expected = json_get_string(entry, "sha256", error);
    if (!expected || !json_get_integer(entry, "bytes", 0, INT64_MAX, &bytes, error))
        return fail_within(error, "the manifest's entry for %s", path);
    if (stat(path, &status) != 0) return fail_errno(error, "%s cannot be read", path);
    if (!S_ISREG(status.st_mode) || status.st_size != bytes)
        return fail(error, "%s has %lld bytes, not the %lld of its manifest", path,
                    (long long)status.st_size, (long long)bytes);
    if (!checksums) return true;
    if (!sha256_file(path, actual, error)) return false;
    return strcmp(actual, expected) == 0 ||
           fail(error, "%s is damaged: its SHA-256 is not that of its manifest", path);
}

static bool verify_files(const char *directory, json_t *files, bool checksums, Error *error) {
    const char *name;
    json_t *entry;
    if (!json_object_get(files, model_file) || !json_object_get(files, config_file))
        return fail(error, "%s/%s does not list the model's files", directory, manifest_file);
    json_object_foreach (files, name, entry) {
        if (strchr(name, '/'))
            return fail(error, "%s/%s lists '%.100s', which is not a plain file name", directory,
                        manifest_file, name);
        char *path = path_join(directory, name, error);
        bool done = path && verify_file(path, entry, checksums, error);
        free(path);
        if (!done) return false;
    }
    return true;
}

bool checkpoint_verify(const char *path, bool checksums, Error *error) {
    json_t *manifest = read_json(path, manifest_file, error);
    if (!manifest) return false;
    bool done = verify_files(path, json_object_get(manifest, "files"), checksums, error);
    json_decref(manifest);
    return done;
}

static bool open_tensors(Safetensors *file, const char *directory, const char *name, Error *error) {
    char *path = path_join(directory, name, error);
    bool done = path && safetensors_open(file, path, error);
    free(path);
    return done;
}

/* What the weights alone do not hold. */
static bool open_for_resume(Checkpoint *checkpoint, const char *path, Error *error) {
    static const char *const needed[] = {manifest_file, optimizer_file, state_file};
    for (int i = 0; i < 3; i++)
        if (!exists_in(path, needed[i]))
            return fail(error,
                        "%s has no %s: it can be evaluated or started from, but a run cannot be "
                        "resumed from it",
                        path, needed[i]);
    checkpoint->state = read_json(path, state_file, error);
    return checkpoint->state && open_tensors(&checkpoint->optimizer, path, optimizer_file, error);
}

static bool open_weights(Checkpoint *checkpoint, const char *path, Error *error) {
    if (!path_is_directory(path))
        return fail(error, "%s is not a checkpoint: there is no such directory", path);
    if (open_tensors(&checkpoint->model, path, model_file, error)) return true;
    if (exists_in(path, "model.safetensors.index.json"))
        fail(error, "%s holds weights split over several files; save them as one %s", path,
             model_file);
    return false;
}

bool checkpoint_open(Checkpoint *checkpoint, const char *path, CheckpointUse use, Error *error) {
    *checkpoint = (Checkpoint){0};
    if ((!exists_in(path, manifest_file) || checkpoint_verify(path, false, error)) &&
        open_weights(checkpoint, path, error) &&
        (use != CHECKPOINT_RESUME || open_for_resume(checkpoint, path, error)))
        return true;
    checkpoint_close(checkpoint);
    return false;
}

void checkpoint_close(Checkpoint *checkpoint) {
    safetensors_close(&checkpoint->model);
    safetensors_close(&checkpoint->optimizer);
    json_decref(checkpoint->state);
    *checkpoint = (Checkpoint){0};
}

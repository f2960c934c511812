#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(const char *path, size_t limit, Bytes *out, Error *error) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_errno(error, "cannot open %s", path);
    out->size = 0;
    bool done = false;
    for (;;) {
        if (!reserve(&out->data, &out->capacity, out->size + 65537, 1, error)) break;
        ssize_t count = read(descriptor, out->data + out->size, out->capacity - out->size - 1);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            fail_errno(error, "cannot read %s", path);
            break;
        }
        out->size += (size_t)count;
        if (out->size > limit) {
            fail(error, "%s is larger than the %zu bytes allowed here", path, limit);
            break;
        }
        if (count == 0) {
            out->data[out->size] = 0;
            done = true;
            break;
        }
    }
    close(descriptor);
    return done;
}

bool file_map(FileMap *map, const char *path, Error *error) {
    *map = (FileMap){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_errno(error, "cannot open %s", path);
    struct stat status;
    bool done = false;
    if (fstat(descriptor, &status) != 0) {
        fail_errno(error, "cannot read the size of %s", path);
    } else if (!S_ISREG(status.st_mode)) {
        fail(error, "%s is not a regular file", path);
    } else if (status.st_size == 0) {
        done = true;
    } else {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (data == MAP_FAILED) {
            fail_errno(error, "cannot map %s", path);
        } else {
            *map = (FileMap){.data = data, .size = (size_t)status.st_size};
            done = true;
        }
    }
    close(descriptor);
    return done;
}

void file_unmap(FileMap *map) {
    if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (FileMap){0};
}

void file_map_release(const void *data, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data / page * page;
    if (size) madvise((void *)begin, (uintptr_t)data + size - begin, MADV_DONTNEED);
}

struct FileWriter {
    char *path, *temporary;
    int descriptor;
    bool rewritten;
    EVP_MD_CTX *digest;
};

static void file_writer_free(FileWriter *writer) {
    if (writer->descriptor >= 0) close(writer->descriptor);
    EVP_MD_CTX_free(writer->digest);
    free(writer->path);
    free(writer->temporary);
    free(writer);
}

FileWriter *file_writer_open(const char *path, Error *error) {
    FileWriter *writer = allocate(1, sizeof *writer, error);
    if (!writer) return NULL;
    writer->descriptor = -1;
    writer->path = copy_string(path, error);
    writer->temporary = writer->path ? allocate(strlen(path) + 5, 1, error) : NULL;
    writer->digest = EVP_MD_CTX_new();
    if (!writer->temporary || !writer->digest ||
        EVP_DigestInit_ex(writer->digest, EVP_sha256(), NULL) != 1) {
        if (writer->temporary) fail(error, "cannot start a SHA-256 digest");
        file_writer_free(writer);
        return NULL;
    }
    snprintf(writer->temporary, strlen(path) + 5, "%s.tmp", path);
    writer->descriptor = open(writer->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (writer->descriptor < 0) {
        fail_errno(error, "cannot create %s", writer->temporary);
        file_writer_free(writer);
        return NULL;
    }
    return writer;
}

static bool write_all(int descriptor, const uint8_t *data, size_t size) {
    while (size) {
        ssize_t count = write(descriptor, data, size < (1u << 30) ? size : 1u << 30);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        data += count;
        size -= (size_t)count;
    }
    return true;
}

bool file_writer_write(FileWriter *writer, const void *data, size_t size, Error *error) {
    if (!write_all(writer->descriptor, data, size))
        return fail_errno(error, "cannot write %zu bytes to %s", size, writer->temporary);
    EVP_DigestUpdate(writer->digest, data, size);
    return true;
}

bool file_writer_overwrite(FileWriter *writer, uint64_t offset, const void *data, size_t size,
                           Error *error) {
    writer->rewritten = true;
    if (lseek(writer->descriptor, (off_t)offset, SEEK_SET) < 0 ||
        !write_all(writer->descriptor, data, size) || lseek(writer->descriptor, 0, SEEK_END) < 0)
        return fail_errno(error, "cannot write %zu bytes to %s", size, writer->temporary);
    return true;
}

static void digest_text(EVP_MD_CTX *digest, char out[SHA256_TEXT]) {
    uint8_t raw[32];
    EVP_DigestFinal_ex(digest, raw, NULL);
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

static bool sync_parent(const char *path, Error *error) {
    char *parent = copy_string(path, error);
    if (!parent) return false;
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = 0;
    bool done = directory_sync(slash ? parent : ".", error);
    free(parent);
    return done;
}

bool file_writer_commit(FileWriter *writer, char sha256[SHA256_TEXT], Error *error) {
    bool done = true;
    sync_file_range(writer->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); /* the disk works meanwhile */
    if (sha256 && !writer->rewritten) digest_text(writer->digest, sha256);
    if (sha256 && writer->rewritten) done = sha256_file(writer->temporary, sha256, error);
    if (done && fsync(writer->descriptor) != 0)
        done = fail_errno(error, "cannot flush %s to disk", writer->temporary);
    int descriptor = writer->descriptor;
    writer->descriptor = -1;
    if (close(descriptor) != 0 && done)
        done = fail_errno(error, "cannot close %s", writer->temporary);
    if (done && rename(writer->temporary, writer->path) != 0)
        done = fail_errno(error, "cannot rename %s to %s", writer->temporary, writer->path);
    if (done)
        done = sync_parent(writer->path, error);
    else
        unlink(writer->temporary);
    file_writer_free(writer);
    return done;
}

void file_writer_discard(FileWriter *writer) {
    if (!writer) return;
    unlink(writer->temporary);
    file_writer_free(writer);
}

bool file_write(const char *path, const void *data, size_t size, Error *error) {
    FileWriter *writer = file_writer_open(path, error);
    if (!writer) return false;
    if (!file_writer_write(writer, data, size, error)) {
        file_writer_discard(writer);
        return false;
    }
    return file_writer_commit(writer, NULL, error);
}

void sha256_bytes(const void *data, size_t size, char out[SHA256_TEXT]) {
    uint8_t raw[32];
    EVP_Digest(data, size, raw, NULL, EVP_sha256(), NULL);
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

bool sha256_file(const char *path, char out[SHA256_TEXT], Error *error) {
    FileMap map;
    if (!file_map(&map, path, error)) return false;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool done = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;
    const size_t stride = 4u << 20; /* dropped as read, so that a large file is not all resident */
    for (size_t start = 0; done && start < map.size; start += stride) {
        size_t count = map.size - start < stride ? map.size - start : stride;
        EVP_DigestUpdate(digest, map.data + start, count);
        file_map_release(map.data, map.size);
    }
    if (done)
        digest_text(digest, out);
    else
        fail(error, "cannot start a SHA-256 digest of %s", path);
    EVP_MD_CTX_free(digest);
    file_unmap(&map);
    return done;
}

bool path_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool path_is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

char *path_join(const char *directory, const char *name, Error *error) {
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = allocate(size, 1, error);
    if (path) snprintf(path, size, "%s/%s", directory, name);
    return path;
}

bool directory_create(const char *path, Error *error) {
    char *partial = copy_string(path, error);
    if (!partial) return false;
    bool done = true;
    for (char *end = partial + 1; done; end++) {
        if (*end != '/' && *end != 0) continue;
        char saved = *end;
        *end = 0;
        if (mkdir(partial, 0755) != 0 && errno != EEXIST)
            done = fail_errno(error, "cannot create directory %s", partial);
        *end = saved;
        if (!saved) break;
    }
    free(partial);
    if (done && !path_is_directory(path))
        return fail(error, "%s exists and is not a directory", path);
    return done;
}

bool directory_sync(const char *path, Error *error) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return fail_errno(error, "cannot open directory %s", path);
    bool done = fsync(descriptor) == 0 || errno == EINVAL;
    if (!done) fail_errno(error, "cannot flush directory %s", path);
    close(descriptor);
    return done;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

bool directory_remove(const char *path, Error *error) {
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) return true;
    return fail_errno(error, "cannot remove %s", path);
}

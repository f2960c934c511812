/* The doctor's look at the GPU: what is there, and what keeps hearth from using it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glob.h>

#include "base/units.h"
#include "cmd/checks.h"

static long read_hexadecimal(const char *path) {
    char text[32] = "";
    FILE *file = fopen(path, "r");
    bool done = file && fgets(text, sizeof text, file);
    if (file) fclose(file);
    return done ? strtol(text, NULL, 16) : 0;
}

/* Whether a display device of NVIDIA's is in this machine, with or without a driver. */
static bool has_nvidia_card(void) {
    enum { NVIDIA = 0x10de, DISPLAY = 0x03 };
    static const char pattern[] = "/sys/bus/pci/devices/*/vendor";
    glob_t found;
    bool card = false;
    if (glob(pattern, 0, NULL, &found) != 0) return false;
    for (size_t i = 0; i < found.gl_pathc && !card; i++) {
        char class[512];
        size_t length = strlen(found.gl_pathv[i]) - strlen("vendor");
        snprintf(class, sizeof class, "%.*sclass", (int)length, found.gl_pathv[i]);
        card = read_hexadecimal(found.gl_pathv[i]) == NVIDIA &&
               read_hexadecimal(class) >> 16 == DISPLAY;
    }
    globfree(&found);
    return card;
}

static void check_absent(Checks *checks, const CudaReport *report) {
    Check *check = checks_add(checks, "GPU", "driver", "%s", report->no_driver.message);
    if (!has_nvidia_card())
        check_advise(check, CHECK_NOTE, "none is needed: hearth trains on the CPU (--device cpu)");
    else if (!report->built)
        check_advise(check, CHECK_FIX,
                     "there is an NVIDIA GPU here: install the CUDA toolkit 13 and build hearth "
                     "again; until then --device cpu works");
    else
        check_advise(check, CHECK_FIX,
                     "there is an NVIDIA GPU here: install its driver, 580 or later (in a "
                     "container: run it with the GPU); until then --device cpu works");
}

/* Both libraries say 130102 for 13.1.2. */
static void check_library(Checks *checks, const char *name, int version, const char *use) {
    if (version < 0)
        check_advise(checks_add(checks, "GPU", name, "not found"), CHECK_NOTE, "%s", use);
    else
        checks_add(checks, "GPU", name, "%d.%d.%d", version / 10000, version / 100 % 100,
                   version % 100);
}

static void check_chip(Checks *checks, const CudaReport *report) {
    char text[32], free_text[32];
    checks_add(checks, "GPU", "chip", "%s, compute capability %d.%d%s", report->gpu,
               report->capability / 10, report->capability % 10,
               report->gpus > 1 ? " (the first of several; CUDA_VISIBLE_DEVICES chooses)" : "");
    checks_add(checks, "GPU", "driver", "%s, CUDA %d.%d",
               *report->driver_version ? report->driver_version : "of unknown version",
               report->cuda / 1000, report->cuda % 1000 / 10);
    Check *check =
        report->memory_free < 0
            ? checks_add(checks, "GPU", "memory", "%s", format_bytes(text, report->memory))
            : checks_add(checks, "GPU", "memory", "%s of %s free",
                         format_bytes(free_text, report->memory_free),
                         format_bytes(text, report->memory));
    if (report->memory_free >= 0 && report->memory_free < report->memory * 17 / 20)
        check_advise(check, CHECK_NOTE,
                     "something else uses the GPU (nvidia-smi shows what): end it, or give "
                     "'hearth train' less with --memory");
}

static void check_kernels(Checks *checks, const CudaReport *report) {
    if (report->compiled)
        checks_add(checks, "GPU", "kernels", "in this build for this chip");
    else
        check_advise(checks_add(checks, "GPU", "kernels", "in this build for %s", report->chips),
                     CHECK_NOTE,
                     "for other chips the driver compiles them at the start, if it can: better "
                     "build hearth with this chip in HEARTH_CUDA_CHIPS");
    check_library(checks, "cuBLASLt", report->cublaslt, "it multiplies the matrices");
    check_library(checks, "NCCL", report->nccl, "only several GPUs need it");
}

/* Not every chip has every sensor, or a limit of power. */
static void check_temperature(Checks *checks, const CudaReport *report) {
    if (report->temperature < 0) return;
    Check *check =
        checks_add(checks, "GPU", "temperature", "%d degrees Celsius", report->temperature);
    if (report->slowdown_temperature > 0 && report->temperature > report->slowdown_temperature - 5)
        check_advise(check, CHECK_NOTE, "it slows down at %d: look after fans and dust",
                     report->slowdown_temperature);
}

static void check_power(Checks *checks, const CudaReport *report) {
    if (report->power < 0) return;
    if (report->power_limit < 0 || report->power_default < 0) {
        checks_add(checks, "GPU", "power", "%d W", report->power);
        return;
    }
    Check *check = checks_add(checks, "GPU", "power", "%d W, limit %d W of %d W", report->power,
                              report->power_limit, report->power_default);
    if (report->power_limit < report->power_default)
        check_advise(check, CHECK_NOTE, "for its full speed: sudo nvidia-smi -pl %d",
                     report->power_default);
}

static void check_sensors(Checks *checks, const CudaReport *report) {
    if (!report->watched) {
        check_advise(checks_add(checks, "GPU", "sensors", "%s", report->not_watched.message),
                     CHECK_NOTE, "training works without them");
        return;
    }
    check_temperature(checks, report);
    check_power(checks, report);
    Check *check = checks_add(checks, "GPU", "clock", "%s%s",
                              *report->slowed ? "held down by " : "free", report->slowed);
    if (*report->slowed)
        check_advise(check, CHECK_NOTE, "steps take longer than predicted while that lasts");
}

void check_gpu(Checks *checks, const CudaReport *report) {
    if (!report->driver) {
        check_absent(checks, report);
        return;
    }
    check_chip(checks, report);
    check_kernels(checks, report);
    check_sensors(checks, report);
    if (!report->usable)
        check_advise(
            checks_add(checks, "GPU", "use", "not possible: %s", report->not_usable.message),
            CHECK_FIX, "until that is put right --device cpu works");
}

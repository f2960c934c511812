#include "image.h"

#include <algorithm>
#include <cstring>

#include <zstd.h>

#include "driver.h"

namespace driver {

constexpr uint32_t magic = 0xba55ed50;

struct Header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* that follow */
};

/* In front of each part of a fat binary; only what is used has a name. */
struct Part {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* with padding */
    uint32_t compressed_bytes;
    uint32_t other[2];
    uint32_t architecture; /* 120 */
    uint32_t name[2];
    uint64_t flags;
    uint64_t reserved;
    uint64_t plain_bytes; /* when it is compressed */
};

constexpr uint16_t kind_ptx = 1, kind_elf = 2;
constexpr uint64_t flag_zstd = 0x8000, flag_lz4 = 0x2000, flag_one_chip = 0x100000,
                   flag_family = 0x200000;

static bool serves(const Part &part, const Chip &chip) {
    int major = static_cast<int>(part.architecture) / 10,
        minor = static_cast<int>(part.architecture) % 10;
    if (part.flags & flag_one_chip) return major == chip.major && minor == chip.minor;
    if (part.kind == kind_ptx && !(part.flags & flag_family)) {
        return major < chip.major || (major == chip.major && minor <= chip.minor);
    }
    return major == chip.major && minor <= chip.minor;
}

/* Code rather than PTX, then the nearest chip. */
static bool is_better(const Part &part, const Part *than) {
    if (!than) return true;
    if (part.kind != than->kind) return part.kind == kind_elf;
    return part.architecture > than->architecture;
}

static CUresult unpack(const Part &part, Code &code) {
    const char *bytes = reinterpret_cast<const char *>(&part) + part.header_bytes;
    code.is_ptx = part.kind == kind_ptx;
    if (part.flags & flag_lz4)
        return refuse(CUDA_ERROR_INVALID_IMAGE, "LZ4 in images is not modelled");
    if (!(part.flags & flag_zstd)) {
        code.bytes.assign(bytes, bytes + part.bytes);
        return CUDA_SUCCESS;
    }
    code.bytes.resize(part.plain_bytes);
    size_t size =
        ZSTD_decompress(code.bytes.data(), code.bytes.size(), bytes, part.compressed_bytes);
    if (ZSTD_isError(size) || size != part.plain_bytes) {
        return refuse(CUDA_ERROR_INVALID_IMAGE, "the image for sm_%u does not unpack",
                      part.architecture);
    }
    return CUDA_SUCCESS;
}

CUresult choose_code(const void *data, const Chip &chip, Code &code) {
    const Header *header = static_cast<const Header *>(data);
    if (!data || header->magic != magic)
        return refuse(CUDA_ERROR_INVALID_IMAGE, "this is no fat binary");
    const char *place = static_cast<const char *>(data) + header->header_bytes;
    const char *end = place + header->bytes;
    const Part *best = nullptr;
    std::string seen;
    while (place < end) {
        const Part *part = reinterpret_cast<const Part *>(place);
        if (part->header_bytes < sizeof(Part) || part->bytes > static_cast<uint64_t>(end - place)) {
            return refuse(CUDA_ERROR_INVALID_IMAGE, "the fat binary is damaged");
        }
        seen +=
            (part->kind == kind_ptx ? " compute_" : " sm_") + std::to_string(part->architecture);
        if (serves(*part, chip) && is_better(*part, best)) best = part;
        place += part->header_bytes + part->bytes;
    }
    if (best) return unpack(*best, code);
    return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
                  "nothing for compute capability %d.%d in an image for%s", chip.major, chip.minor,
                  seen.c_str());
}

/* A kernel has a section of an ELF file, or an entry in PTX, of its name. */
bool Code::has_kernel(const std::string &name) const {
    std::string mark = is_ptx ? ".entry " + name + "(" : std::string("\0.text.", 7) + name + '\0';
    return std::search(bytes.begin(), bytes.end(), mark.begin(), mark.end()) != bytes.end();
}

} // namespace driver

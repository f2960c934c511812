#include "ptx.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "decode.h"
#include "host/runtime.h"
#include "run.h"

namespace ptx {

/* They stay where they are: a deque's elements do not move when it grows. */
static std::deque<DecodedKernel> decoded;
static std::deque<host::Kernel> kernels;

static std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        const size_t begins = line.find_first_not_of(" \t");
        lines.push_back(begins == std::string::npos ? "" : line.substr(begins));
    }
    return lines;
}

static void add(const std::string &file, const std::vector<std::string> &lines,
                const ParsedKernel &parsed) {
    if (find(parsed.name)) throw Refusal(1, "a second kernel " + parsed.name);
    const std::vector<Instruction> code = decode(parsed);
    decoded.push_back({file, parsed, lines, code});
    const DecodedKernel &kernel = decoded.back();
    std::vector<unsigned> sizes;
    for (const Parameter &parameter : parsed.parameters) sizes.push_back(parameter.bytes);
    kernels.push_back({kernel.parsed.name.c_str(), kernel.file.c_str(), sizes, parsed.threads,
                       [&kernel](void **parameters) { run(kernel, parameters); },
                       parsed.static_shared_bytes});
}

bool load_text(const std::string &file, const std::string &text, std::string &error) {
    const std::vector<std::string> lines = lines_of(text);
    try {
        for (const ParsedKernel &parsed : parse(text)) add(file, lines, parsed);
    } catch (const Refusal &refusal) {
        const size_t line = static_cast<size_t>(refusal.line);
        error = file + ":" + std::to_string(line) + ": " + refusal.what();
        if (line <= lines.size()) error += "\n    " + lines[line - 1];
        return false;
    }
    return true;
}

static bool load_file(const std::string &file, std::string &error) {
    std::ifstream stream(file, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    if (stream) return load_text(file, text.str(), error);
    error = file + ": cannot be read";
    return false;
}

bool load(const std::string &directory, std::string &error) {
    std::error_code code;
    std::vector<std::string> files;
    for (const auto &entry : std::filesystem::directory_iterator(directory, code))
        if (entry.path().extension() == ".ptx") files.push_back(entry.path().string());
    if (files.empty()) {
        error = directory + ": no .ptx file; `ninja cuda_ptx` makes them";
        return false;
    }
    std::sort(files.begin(), files.end());
    return std::all_of(files.begin(), files.end(),
                       [&](const std::string &file) { return load_file(file, error); });
}

const host::Kernel *find(const std::string &name) {
    for (const host::Kernel &kernel : kernels)
        if (name == kernel.name) return &kernel;
    return nullptr;
}

} // namespace ptx

/* Registers that say where a thread is. */
#include "host/runtime.h"
#include "parse.h"

namespace ptx {

static const struct {
    const char *name;
    SpecialRegister *value;
} special_registers[] = {
    {"%tid.x", [] { return uint64_t{host::thread_index().x}; }},
    {"%tid.y", [] { return uint64_t{host::thread_index().y}; }},
    {"%tid.z", [] { return uint64_t{host::thread_index().z}; }},
    {"%ctaid.x", [] { return uint64_t{host::block_index().x}; }},
    {"%ctaid.y", [] { return uint64_t{host::block_index().y}; }},
    {"%ctaid.z", [] { return uint64_t{host::block_index().z}; }},
    {"%ntid.x", [] { return uint64_t{host::block_size().x}; }},
    {"%ntid.y", [] { return uint64_t{host::block_size().y}; }},
    {"%ntid.z", [] { return uint64_t{host::block_size().z}; }},
    {"%nctaid.x", [] { return uint64_t{host::grid_size().x}; }},
    {"%nctaid.y", [] { return uint64_t{host::grid_size().y}; }},
    {"%nctaid.z", [] { return uint64_t{host::grid_size().z}; }},
    {"%laneid", [] { return uint64_t{host::lane()}; }},
};

SpecialRegister *special_register(const std::string &name) {
    for (const auto &special : special_registers)
        if (name == special.name) return special.value;
    return nullptr;
}

} // namespace ptx

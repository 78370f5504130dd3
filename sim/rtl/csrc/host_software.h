// Runs host software on the simulated accelerator: loads a shared library and calls its `host_main`, whose register
// accesses go through the shell's request port.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <functional>
#include <stdexcept>

#include "Vtop.h"
#include "environment.h"
#include "host_machine.h"

namespace bench {

constexpr uint64_t kIdleCycles = 256;
constexpr unsigned kResetCycles = 4;

class HostSoftware {
  public:
    HostSoftware(Vtop& top, const Environment& environment, std::function<void()> cycle)
        : top_(top), cycle_(std::move(cycle)), job_(environment.job), limit_(job_.number("limit")) {
        top_.rst = 1;
        for (unsigned i = 0; i < kResetCycles; ++i) cycle_();
        top_.rst = 0;
    }

    // Call `host_main` of the library and print its result as a line of JSON.
    void run(const std::string& library) {
        void* const loaded = dlopen(library.c_str(), RTLD_NOW);
        if (loaded == nullptr) throw std::runtime_error(dlerror());
        const auto host_main = reinterpret_cast<host_function>(dlsym(loaded, "host_main"));
        if (host_main == nullptr) throw std::runtime_error(dlerror());
        const size_t bytes = job_.number("memory_bytes");
        const Mapping memory(job_.text("memory_file"), bytes);
        const std::string folder = job_.text("memory_file").substr(0, job_.text("memory_file").rfind('/'));
        const host_machine machine = {read32, write32, advance, this, memory.data(), bytes, job_.number("base"), folder.c_str()};
        const int result = host_main(&machine);
        std::printf("{\"result\": %d, \"cycles\": %llu, \"violation\": %s}\n", result,
                    static_cast<unsigned long long>(top_.cycle), top_.violation ? "true" : "false");
    }

  private:
    // One register access. A response other than OKAY, or an access after the limit of cycles, is an error.
    int access(bool write, uint32_t offset, uint32_t& value) {
        if (top_.cycle >= limit_) return 1;
        const auto answers = top_.answers;
        top_.request_write = write;
        top_.request_address = offset;
        top_.request_data = value;
        top_.request = !top_.request;
        while (top_.answers == answers) cycle_();
        if (!write) value = top_.answer;
        return top_.answer_code;
    }

    static int read32(void* self, uint32_t offset, uint32_t* value) {
        return static_cast<HostSoftware*>(self)->access(false, offset, *value);
    }

    static int write32(void* self, uint32_t offset, uint32_t value) {
        return static_cast<HostSoftware*>(self)->access(true, offset, value);
    }

    static int advance(void* self) {
        HostSoftware& host = *static_cast<HostSoftware*>(self);
        for (uint64_t i = 0; i < kIdleCycles && !host.top_.interrupted && host.top_.cycle < host.limit_; ++i) host.cycle_();
        return host.top_.interrupted;
    }

    Vtop& top_;
    const std::function<void()> cycle_;
    const Job& job_;
    const uint64_t limit_;
};

}  // namespace bench

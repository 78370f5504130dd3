// A record of every word that a unit wrote, in the order of the writes; diagnosis and random programs ask for it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bench {

// Who wrote; numbered as in sim/rtl/write_log.py, which also has numbers for contents of memories.
enum class Writer : uint32_t { LOAD_SCRATCH = 0, LOAD_WEIGHT = 1, MAC = 2, VEC = 3, STORE = 4 };

class WriteLog {
  public:
    // An empty path makes a log that records nothing.
    WriteLog(const std::string& path, unsigned word_bytes) : word_bytes_(word_bytes) {
        if (path.empty()) return;
        file_ = std::fopen(path.c_str(), "wb");
        if (file_ == nullptr) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
    }
    ~WriteLog() {
        if (file_ != nullptr) std::fclose(file_);
    }
    WriteLog(const WriteLog&) = delete;
    WriteLog& operator=(const WriteLog&) = delete;

    void record(uint64_t cycle, Writer writer, uint64_t word, uint32_t mask, const uint8_t* data) {
        if (file_ == nullptr) return;
        const struct {
            uint64_t cycle;
            uint32_t writer, word, mask, word_high;
        } head = {cycle, static_cast<uint32_t>(writer), static_cast<uint32_t>(word), mask, static_cast<uint32_t>(word >> 32)};
        std::fwrite(&head, sizeof head, 1, file_);
        std::fwrite(data, 1, word_bytes_, file_);
    }

  private:
    const unsigned word_bytes_;
    std::FILE* file_ = nullptr;
};

}  // namespace bench

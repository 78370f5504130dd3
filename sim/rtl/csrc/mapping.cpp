#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "job.h"

namespace bench {

Mapping::Mapping(const std::string& path, size_t bytes) : data_(nullptr), bytes_(bytes) {
    const int file = open(path.c_str(), O_RDWR);
    if (file < 0) throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno));
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    // The mapping stays valid without the descriptor.
    close(file);
    if (at == MAP_FAILED) throw std::runtime_error("cannot map " + path + ": " + std::strerror(errno));
    data_ = static_cast<uint8_t*>(at);
}

Mapping::~Mapping() { munmap(data_, bytes_); }

}  // namespace bench

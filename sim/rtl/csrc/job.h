// The job file: what to run, as lines of `key value...`. Written by sim/rtl/job.py, read by every C++ bench.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

class Job {
  public:
    explicit Job(const std::string& path) {
        std::ifstream file(path);
        if (!file) throw std::runtime_error("cannot read job file " + path);
        for (std::string line; std::getline(file, line);) {
            const auto space = line.find(' ');
            if (space == std::string::npos) continue;
            lines_.emplace_back(line.substr(0, space), line.substr(space + 1));
        }
    }

    // The value of a key that occurs once.
    std::string text(const std::string& key) const {
        for (const auto& [name, value] : lines_)
            if (name == key) return value;
        throw std::runtime_error("job file lacks " + key);
    }

    uint64_t number(const std::string& key) const { return std::strtoull(text(key).c_str(), nullptr, 0); }

    // All values of a key that may occur several times, each as a row of numbers.
    std::vector<std::vector<uint64_t>> rows(const std::string& key) const {
        std::vector<std::vector<uint64_t>> found;
        for (const auto& [name, value] : lines_) {
            if (name != key) continue;
            std::istringstream words(value);
            auto& row = found.emplace_back();
            for (std::string word; words >> word;) row.push_back(std::strtoull(word.c_str(), nullptr, 0));
        }
        return found;
    }

  private:
    std::vector<std::pair<std::string, std::string>> lines_;
};

// A file mapped into memory, shared with other processes.
class Mapping {
  public:
    Mapping(const std::string& path, size_t bytes);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    uint8_t* data() const { return data_; }
    size_t size() const { return bytes_; }

  private:
    uint8_t* data_;
    size_t bytes_;
};

}  // namespace bench

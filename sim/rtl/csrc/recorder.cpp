#include "recorder.h"

#include <cstring>
#include <memory>

namespace bench {
namespace {

constexpr size_t kFlushRecords = 1 << 14;
constexpr unsigned kStartedBits = 4, kPulseBits = 8;  // a trace record is cycle << 8 | done << 4 | started

std::FILE* create(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
    return file;
}

}  // namespace

Recorder::Recorder(const Job& job, Registers& registers)
    : registers_(registers),
      status_map_(job.text("status_file"), sizeof(Status)),
      status_(reinterpret_cast<Status*>(status_map_.data())),
      trace_(create(job.text("trace_file"))),
      snapshots_(create(job.text("snapshot_file"))) {
    for (const auto& row : job.rows("boundary")) boundaries_.push_back({row.at(0), row.at(1)});
    for (const auto& row : job.rows("counter")) counters_.push_back(static_cast<uint32_t>(row.at(0)));
    trace_buffer_.reserve(kFlushRecords);
}

Recorder::~Recorder() {
    flush();
    std::fclose(trace_);
    std::fclose(snapshots_);
}

void Recorder::flush() {
    std::fwrite(trace_buffer_.data(), sizeof(uint64_t), trace_buffer_.size(), trace_);
    std::fflush(trace_);
    trace_buffer_.clear();
    std::fflush(snapshots_);
}

void Recorder::pulses(uint64_t cycle, unsigned started, unsigned done) {
    trace_buffer_.push_back(cycle << kPulseBits | done << kStartedBits | started);
    if (trace_buffer_.size() >= kFlushRecords) flush();
    for (unsigned unit = 0; unit < kUnits; ++unit) {
        status_->started[unit] += started >> unit & 1;
        status_->done[unit] += done >> unit & 1;
    }
    status_->cycle = cycle;
    // Several layers may end at one pulse.
    while (status_->layers < boundaries_.size() &&
           status_->done[boundaries_[status_->layers].unit] >= boundaries_[status_->layers].count) {
        ++status_->layers;
        snapshot(cycle);
    }
}

void Recorder::snapshot(uint64_t cycle) {
    // A row is written as a whole: the next layer may end before all counters are read.
    const auto row = std::make_shared<std::vector<uint64_t>>(1, cycle);
    for (const uint32_t address : counters_)
        // The reads are queued on the register port, so the counters are those of a few cycles later.
        registers_.read(address, [this, row](uint32_t data, uint8_t) {
            row->push_back(data);
            if (row->size() == 1 + counters_.size())
                std::fwrite(row->data(), sizeof(uint64_t), row->size(), snapshots_);
        });
}

}  // namespace bench

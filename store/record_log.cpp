// SPDX-License-Identifier: Apache-2.0
#include "store/record_log.hpp"

#include <cinttypes>

namespace wirepress::store {

Status RecordLog::create(const char* path, const Head& head) {
  WPR_TRY(file_.open(path, Access::kCreate));
  std::byte bytes[kHeadSize];
  write_head(head, bytes);
  Status status = file_.write(0, bytes);
  if (status.ok()) status = file_.sync();
  if (status.ok()) status = file_.sync_folder();
  if (!status.ok()) {
    file_.remove();
    return status;
  }
  head_ = head;
  end_ = kHeadSize;
  return {};
}

Status RecordLog::open(const char* path, bool append, Contents* contents) {
  WPR_TRY(file_.open(path, append ? Access::kAppend : Access::kRead));
  WPR_TRY(load(file_, contents));
  head_ = contents->head;
  end_ = contents->report.good_size;
  torn_ = contents->report.torn_bytes > 0;
  next_sequence_ = contents->next_sequence;
  return {};
}

Status RecordLog::start_appending(size_t buffer_size, uint64_t reserve) {
  if (torn_) WPR_TRY(file_.truncate(end_));
  return appender_.open(end_, buffer_size, reserve);
}

Status RecordLog::append(Kind kind, uint64_t step, ConstBytes payload, uint64_t* offset) {
  Record record{kind, 0, step, head_.raw_size, payload.size(), checksum(payload, head_.id)};
  const std::lock_guard lock(mutex_);
  record.sequence = next_sequence_;
  std::byte bytes[kRecordSize];
  write_record(record, head_.id, end_, bytes);
  const Status status = appender_.append(end_, bytes, payload);
  if (!status.ok()) {
    // What was written of it would be a torn tail; where it cannot be cut, the next record covers
    // it.
    (void)file_.truncate(end_);
    return fail(status.code(), "step %" PRIu64 ": %s", step, status.text());
  }
  *offset = end_;
  end_ += kRecordSize + payload.size();
  ++next_sequence_;
  return {};
}

Status RecordLog::append_index(std::span<const IndexEntry> index) {
  const std::lock_guard lock(mutex_);
  Status status = appender_.cut(end_);
  if (status.ok()) status = store::append_index(file_, head_, index, next_sequence_, end_);
  if (status.ok()) return file_.sync();
  (void)file_.truncate(end_);
  return status;
}

void RecordLog::close() {
  direct_reads_.close();
  file_.close();
}

}  // namespace wirepress::store

// SPDX-License-Identifier: Apache-2.0
#include "store/caller_codecs.hpp"

namespace wirepress::store {

Status CallerCodecs::borrow(Owned** codec) {
  const std::thread::id me = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  Owned* mine = nullptr;
  for (Owned& each : codecs_) {
    if (each.busy) continue;
    if (!mine || each.owner == me) mine = &each;
    if (each.owner == me) break;
  }
  // Another thread's is taken only where there are more than any program has workers.
  constexpr size_t kMost = 64;
  if (!mine || (mine->owner != me && codecs_.size() < kMost)) {
    mine = &codecs_.emplace_back();
    const Status status = mine->codec.open(head_, settings_);
    if (!status.ok()) {
      codecs_.pop_back();
      return status;
    }
  }
  mine->owner = me;
  mine->busy = true;
  *codec = mine;
  return {};
}

void CallerCodecs::give_back(Owned* codec) {
  const std::lock_guard lock(mutex_);
  codec->busy = false;
}

}  // namespace wirepress::store

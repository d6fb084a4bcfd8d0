// SPDX-License-Identifier: Apache-2.0
// Words that identify a job, a node and a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wirepress {

// The job's name among all that run at the same time, alike on all its ranks. `process` is this
// rank's own random word. "": the process manager gives no name.
std::string job_name(const std::string& process);
std::string node_name(const std::string& host);  // a word that no other host has
std::string one_word(std::string text);          // without blanks, not empty
std::string random_word();                 // 16 hexadecimal digits; "": there are no random numbers
std::string hexadecimal(uint64_t number);  // 16 digits

inline uint64_t fnv1a(const void* data, size_t size) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3u;
  }
  return hash;
}

}  // namespace wirepress

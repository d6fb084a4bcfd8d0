// SPDX-License-Identifier: Apache-2.0
// wirepress/store.h for Python: checks nothing that the library checks, and lets other threads run
// meanwhile.
#pragma once

#include <nanobind/nanobind.h>
#include <wirepress/store.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wirepress::python {

class Store {
 public:
  // What is seldom given. Empty: as if it were not there.
  struct More {
    std::string engine;
    std::vector<std::string> options;  // key, value, ...
    std::vector<int> nodes;
    std::vector<uint64_t> tile;
  };
  // mode: "x", "a" or "r". An empty recipe is the option's value; numbers are those of store.h.
  Store(const std::string& path, const std::string& mode, int dtype,
        const std::vector<uint64_t>& shape, int policy, int on_error, const std::string& recipe,
        uint64_t memory, int servants, const std::vector<int>& pin, bool direct, uint64_t reserve,
        const More& more);

  void put(uint64_t step, nanobind::handle data);
  void get(uint64_t step, nanobind::handle out);
  void put_tile(uint64_t step, uint64_t tile, nanobind::handle data);
  void get_tile(uint64_t step, uint64_t tile, nanobind::handle out);
  nanobind::tuple tile_at(uint64_t tile);  // (first, shape)
  void prefetch(uint64_t step, int direction);
  void sync();
  void close();
  nanobind::tuple info();
  nanobind::tuple stats();
  nanobind::list frames();
  nanobind::object frame_from(uint64_t step);  // None: no such step or later one

 private:
  struct Free {
    void operator()(wpr_store* store) const {
      const nanobind::gil_scoped_release released;
      wpr_store_free(store);
    }
  };
  template <class Call>
  void run(Call call);
  void expect_tile(uint64_t tile, size_t size);
  std::unique_ptr<wpr_store, Free> store_;
};

// (report, records); repair: (report, []).
nanobind::tuple store_check(const std::string& path, bool repair);

}  // namespace wirepress::python

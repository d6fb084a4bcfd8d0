// SPDX-License-Identifier: Apache-2.0
// Cores and NUMA nodes.
#pragma once

#include <sched.h>

#include <cstddef>
#include <span>

#include "base/status.hpp"

namespace wirepress::store {

// Fails where this process may not use one of these cores, or none of a node's.
Status check_cores(std::span<const int> cores);
Status check_nodes(std::span<const int> nodes);
// The cores of a node that this process may use.
Status cores_of_node(int node, cpu_set_t* cores);
// A wish: pages of this memory that nobody touched yet come from that node while it has some.
void prefer_node(void* data, size_t size, int node);

}  // namespace wirepress::store

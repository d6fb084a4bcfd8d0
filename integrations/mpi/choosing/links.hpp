// SPDX-License-Identifier: Apache-2.0
// How fast the links to other nodes are.
#pragma once

namespace wirepress {

// In the place of a node: a node that is not known; the slowest link of a collective in which all
// ranks of a node move data, or one of them.
inline constexpr int kAnyLink = -1, kCollectiveLink = -2, kLeadersLink = -3;

// Collective over the world: measures the links, unless mpi_link names a rate.
void prepare_links();
// Bytes a second that a rank may expect to another node while all ranks of its own send; 0: not
// known. `node`: or one of the above.
double link_rate(int node);

}  // namespace wirepress

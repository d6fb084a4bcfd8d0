// SPDX-License-Identifier: Apache-2.0
// The calls that are counted and recorded, and why a message went raw. The numbers of calls stand
// in files of traces, beside a list of their names.
#pragma once

#include <cstdint>

namespace wirepress {

// A row: the constant, and its name in reports and traces. From kTest on calls are only in traces.
// The last rows are no calls of MPI: kCompletion is the end of one request in a call that completes
// several, kTracer the writing of the trace, kExchange what ranks tell each other for the
// interposer's sake.
#define WPR_CALLS(ROW)                                          \
  ROW(kSend, "MPI_Send")                                        \
  ROW(kSsend, "MPI_Ssend")                                      \
  ROW(kIsend, "MPI_Isend")                                      \
  ROW(kIssend, "MPI_Issend")                                    \
  ROW(kRsend, "MPI_Rsend")                                      \
  ROW(kBsend, "MPI_Bsend")                                      \
  ROW(kIrsend, "MPI_Irsend")                                    \
  ROW(kIbsend, "MPI_Ibsend")                                    \
  ROW(kSendInit, "MPI_Send_init")                               \
  ROW(kSsendInit, "MPI_Ssend_init")                             \
  ROW(kBsendInit, "MPI_Bsend_init")                             \
  ROW(kRsendInit, "MPI_Rsend_init")                             \
  ROW(kRecv, "MPI_Recv")                                        \
  ROW(kIrecv, "MPI_Irecv")                                      \
  ROW(kSendrecv, "MPI_Sendrecv")                                \
  ROW(kSendrecvReplace, "MPI_Sendrecv_replace")                 \
  ROW(kIsendrecv, "MPI_Isendrecv")                              \
  ROW(kMrecv, "MPI_Mrecv")                                      \
  ROW(kImrecv, "MPI_Imrecv")                                    \
  ROW(kRecvInit, "MPI_Recv_init")                               \
  ROW(kWait, "MPI_Wait")                                        \
  ROW(kWaitall, "MPI_Waitall")                                  \
  ROW(kWaitany, "MPI_Waitany")                                  \
  ROW(kWaitsome, "MPI_Waitsome")                                \
  ROW(kBcast, "MPI_Bcast")                                      \
  ROW(kReduce, "MPI_Reduce")                                    \
  ROW(kAllreduce, "MPI_Allreduce")                              \
  ROW(kReduceScatter, "MPI_Reduce_scatter")                     \
  ROW(kReduceScatterBlock, "MPI_Reduce_scatter_block")          \
  ROW(kAllgather, "MPI_Allgather")                              \
  ROW(kAllgatherv, "MPI_Allgatherv")                            \
  ROW(kGather, "MPI_Gather")                                    \
  ROW(kGatherv, "MPI_Gatherv")                                  \
  ROW(kScatter, "MPI_Scatter")                                  \
  ROW(kScatterv, "MPI_Scatterv")                                \
  ROW(kAlltoall, "MPI_Alltoall")                                \
  ROW(kAlltoallv, "MPI_Alltoallv")                              \
  ROW(kAlltoallw, "MPI_Alltoallw")                              \
  ROW(kScan, "MPI_Scan")                                        \
  ROW(kExscan, "MPI_Exscan")                                    \
  ROW(kNeighborAllgather, "MPI_Neighbor_allgather")             \
  ROW(kNeighborAllgatherv, "MPI_Neighbor_allgatherv")           \
  ROW(kNeighborAlltoall, "MPI_Neighbor_alltoall")               \
  ROW(kNeighborAlltoallv, "MPI_Neighbor_alltoallv")             \
  ROW(kNeighborAlltoallw, "MPI_Neighbor_alltoallw")             \
  ROW(kIneighborAllgather, "MPI_Ineighbor_allgather")           \
  ROW(kIneighborAllgatherv, "MPI_Ineighbor_allgatherv")         \
  ROW(kIneighborAlltoall, "MPI_Ineighbor_alltoall")             \
  ROW(kIneighborAlltoallv, "MPI_Ineighbor_alltoallv")           \
  ROW(kIneighborAlltoallw, "MPI_Ineighbor_alltoallw")           \
  ROW(kIbcast, "MPI_Ibcast")                                    \
  ROW(kIgather, "MPI_Igather")                                  \
  ROW(kIgatherv, "MPI_Igatherv")                                \
  ROW(kIscatter, "MPI_Iscatter")                                \
  ROW(kIscatterv, "MPI_Iscatterv")                              \
  ROW(kIallgather, "MPI_Iallgather")                            \
  ROW(kIallgatherv, "MPI_Iallgatherv")                          \
  ROW(kIalltoall, "MPI_Ialltoall")                              \
  ROW(kIalltoallv, "MPI_Ialltoallv")                            \
  ROW(kIalltoallw, "MPI_Ialltoallw")                            \
  ROW(kIreduce, "MPI_Ireduce")                                  \
  ROW(kIallreduce, "MPI_Iallreduce")                            \
  ROW(kIreduceScatter, "MPI_Ireduce_scatter")                   \
  ROW(kIreduceScatterBlock, "MPI_Ireduce_scatter_block")        \
  ROW(kIscan, "MPI_Iscan")                                      \
  ROW(kIexscan, "MPI_Iexscan")                                  \
  ROW(kNeighborAllgatherInit, "MPI_Neighbor_allgather_init")    \
  ROW(kNeighborAllgathervInit, "MPI_Neighbor_allgatherv_init")  \
  ROW(kNeighborAlltoallInit, "MPI_Neighbor_alltoall_init")      \
  ROW(kNeighborAlltoallvInit, "MPI_Neighbor_alltoallv_init")    \
  ROW(kNeighborAlltoallwInit, "MPI_Neighbor_alltoallw_init")    \
  ROW(kBcastInit, "MPI_Bcast_init")                             \
  ROW(kGatherInit, "MPI_Gather_init")                           \
  ROW(kGathervInit, "MPI_Gatherv_init")                         \
  ROW(kScatterInit, "MPI_Scatter_init")                         \
  ROW(kScattervInit, "MPI_Scatterv_init")                       \
  ROW(kAllgatherInit, "MPI_Allgather_init")                     \
  ROW(kAllgathervInit, "MPI_Allgatherv_init")                   \
  ROW(kAlltoallInit, "MPI_Alltoall_init")                       \
  ROW(kAlltoallvInit, "MPI_Alltoallv_init")                     \
  ROW(kAlltoallwInit, "MPI_Alltoallw_init")                     \
  ROW(kReduceInit, "MPI_Reduce_init")                           \
  ROW(kAllreduceInit, "MPI_Allreduce_init")                     \
  ROW(kReduceScatterInit, "MPI_Reduce_scatter_init")            \
  ROW(kReduceScatterBlockInit, "MPI_Reduce_scatter_block_init") \
  ROW(kScanInit, "MPI_Scan_init")                               \
  ROW(kExscanInit, "MPI_Exscan_init")                           \
  ROW(kTest, "MPI_Test")                                        \
  ROW(kTestall, "MPI_Testall")                                  \
  ROW(kTestany, "MPI_Testany")                                  \
  ROW(kTestsome, "MPI_Testsome")                                \
  ROW(kRequestGetStatus, "MPI_Request_get_status")              \
  ROW(kRequestFree, "MPI_Request_free")                         \
  ROW(kCancel, "MPI_Cancel")                                    \
  ROW(kStart, "MPI_Start")                                      \
  ROW(kProbe, "MPI_Probe")                                      \
  ROW(kIprobe, "MPI_Iprobe")                                    \
  ROW(kMprobe, "MPI_Mprobe")                                    \
  ROW(kImprobe, "MPI_Improbe")                                  \
  ROW(kIsendrecvReplace, "MPI_Isendrecv_replace")               \
  ROW(kBarrier, "MPI_Barrier")                                  \
  ROW(kIbarrier, "MPI_Ibarrier")                                \
  ROW(kCompletion, "completion")                                \
  ROW(kTracer, "tracer")                                        \
  ROW(kExchange, "wirepress")

#define WPR_CONSTANT(constant, name) constant,
enum Call : uint8_t { WPR_CALLS(WPR_CONSTANT) kCallCount };

// Why a message went raw.
#define WPR_BYPASSES(ROW)                \
  ROW(kSmall, "small")                   \
  ROW(kSameHost, "same_host")            \
  ROW(kNoncontiguous, "noncontiguous")   \
  ROW(kIncompressible, "incompressible") \
  ROW(kNotFaster, "not_faster")          \
  ROW(kNotSmaller, "not_smaller")        \
  ROW(kNoPeer, "no_peer")                \
  ROW(kUnsupported, "unsupported")       \
  ROW(kNoCodec, "no_codec")              \
  ROW(kNonblocking, "nonblocking")       \
  ROW(kLearning, "learning")             \
  ROW(kNotTried, "not_tried")

enum Bypass : uint8_t { WPR_BYPASSES(WPR_CONSTANT) kBypassCount };
#undef WPR_CONSTANT

#define WPR_NAME(constant, name) name,
inline constexpr const char* kCallNames[] = {WPR_CALLS(WPR_NAME)};
inline constexpr const char* kBypassNames[] = {WPR_BYPASSES(WPR_NAME)};
#undef WPR_NAME

// A reduction that may be compressed.
constexpr bool is_reduction(Call call) { return call >= kReduce && call <= kReduceScatterBlock; }

constexpr bool is_of_neighbors(Call call) {
  return (call >= kNeighborAllgather && call <= kIneighborAlltoallw) ||
         (call >= kNeighborAllgatherInit && call <= kNeighborAlltoallwInit);
}

// Blocking, non-blocking or persistent.
constexpr bool is_scan(Call call) {
  return call == kScan || call == kExscan || call == kIscan || call == kIexscan ||
         call == kScanInit || call == kExscanInit;
}
constexpr bool is_reduce_scatter_block(Call call) {
  return call == kReduceScatterBlock || call == kIreduceScatterBlock ||
         call == kReduceScatterBlockInit;
}

}  // namespace wirepress

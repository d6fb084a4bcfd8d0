// SPDX-License-Identifier: Apache-2.0
// Large blocking sends in pieces (spec/mpi-wire.md).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "job/comms.hpp"
#include "messages/buffer.hpp"
#include "messages/frames.hpp"

namespace wirepress {

void prepare_pieces();  // collective, as is end_pieces()
void end_pieces();

struct Head {  // of the first piece, after the cookie
  uint32_t tag = 0;
  int rank = 0;  // of the sender, in MPI_COMM_WORLD
  uint64_t raw_size = 0, piece_size = 0;
};
bool is_in_pieces(const Byte* wire, size_t size);  // of a framed message
bool read_head(const Byte* wire, size_t size, Head* head);

bool may_go_in_pieces(const Comm* comm, int dest, size_t size);
// The message that has the user's envelope, in `bytes`.
Made make_first_piece(Call call, int candidate, const Byte* data, size_t size, const Type& type,
                      Buffer* bytes);

// The sender's side of one message.
class Pieces {
 public:
  Pieces(Call call, int candidate, const Byte* data, const Type& type, int rank, bool there);
  // Hands all pieces to MPI; make_first_piece() made `first`. The user's data is not needed
  // afterwards.
  int launch(Buffer* first, size_t size, int dest, int tag, MPI_Comm comm);
  // Waits until all pieces are sent; not for ever, if the receiver does other things. Its error was
  // not raised.
  int finish();

 private:
  Buffer room_for(size_t size);
  void keep(MPI_Request request, Buffer bytes, size_t size);
  bool take_completed();
  bool out_of_patience();
  void leave();

  Call call_;
  int candidate_;
  const Byte* data_;
  Type type_;
  int rank_;
  bool there_;
  std::vector<MPI_Request> requests_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> sizes_;
  std::vector<int> done_;
  size_t n_left_ = 0, on_their_way_ = 0, largest_ = 0;
  Buffer spare_;  // that of a piece that was sent
  double start_ = 0, progress_ = 0, codec_ = 0;
  bool matched_ = false, late_ = false;
  int error_ = MPI_SUCCESS;
  int lost_ = MPI_SUCCESS;  // of a piece for which there was no memory
};

// The receiver's side: what expand() does. Takes the other pieces from MPI in any case.
int expand_pieces(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity,
                  size_t* raw_size);

}  // namespace wirepress

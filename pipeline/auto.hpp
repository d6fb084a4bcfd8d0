// SPDX-License-Identifier: Apache-2.0
// recipe=auto: which recipe for which blocks, and why.
//
// A look at 4 KiB of a group of blocks comes first. Where another group of the frame, or of the
// last frames of about that size, looked alike, its trials stand; where only their lines of zeros
// differ, what was tried on it counts. Else the features rule out what cannot pay, and what is left
// is tried on a sample for its ratio. Speeds are not taken from the sample, where they would be
// noise, but from a calibration that runs once per process: seconds a byte as a function of how far
// a recipe's data shrink. Two things correct it: a candidate is timed anew now and then, as
// machines are busier at times than at others; and a match finder that would win, if bytes repeated
// from row to row, is timed on a block. So a frame's bytes depend on the data, the goal, these
// times and the frames before it, not on the number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"

namespace wirepress {

// What "auto:..." asks for. At most one of rel and abs is set; 0: lossless.
struct Goal {
  enum class Kind { kTime, kRatio, kSpeed };
  Kind kind = Kind::kTime;
  double link = 1.25e9;  // bytes a second (kTime)
  double min_speed = 0;  // bytes a second that encoding and decoding must reach, 0: any
  int rel = 0, abs = 0;  // as Args hold reals
  // Cores that compress, and that expand. Not the option "threads", on which bytes never depend.
  int threads = 1;
  bool operator==(const Goal&) const = default;
};

bool is_auto(const char* recipe);
// The types for which auto has candidates that lose; a bound means nothing to others.
bool is_float(DType dtype);
// "auto", "auto:rel=1e-3,min-speed=2GB/s"; `link` is the option's value, in bytes a second.
Status parse_goal(const char* recipe, double link, Goal* goal);

// All of 0..1 but the entropies, which are bits a byte or an exponent.
struct Features {
  double zero_lines = 0;  // 64-byte lines of zeros
  // Of the other lines:
  double byte_entropy = 0;      // order 0
  double exponent_entropy = 0;  // order 0; floats only
  double roughness = 0;         // mean step between neighbours by mean size; floats only
  double matches = 0;           // words, not 0, that stood in the sample before
};

// Seconds a byte of a recipe: what it takes for data of each kind that the calibration knows.
class Speed {
 public:
  struct Point {
    double fraction, encode, decode;  // fraction: of the data that is left
  };
  // Data are zeros for the most part, text (words that repeat), or numbers of some smoothness.
  Point zeros = {1, 1, 1}, text = {1, 1, 1};
  // Numbers of which some bytes repeat from row to row, too far apart for a look.
  Point rows = {1, 1, 1};
  // What it takes longer where every second line is zeros than the mixture of both says.
  Point mixed = {0.5, 0, 0};
  // What memory adds for data that leave `fraction`; negative fraction: not known.
  Point memory = {-1, 0, 0};
  double pace = 1;                // of the machine while this was measured, as machine_pace()
  void add_numbers(Point point);  // several

  // What data take longer of which half the lines are zeros: for `mixed`, once all else is known.
  Point beyond_mixture(const Point& half) const;
  // Data that shrink to `fraction` and look like this: a mixture of the kinds.
  Point at(double fraction, const Features& features) const;
  // What data that look like this take at least, whatever they shrink to.
  Point fastest(const Features& features) const;

 private:
  Point numbers_at(double fraction) const;
  Point towards_zeros(const Point& point, double fraction) const;
  Point with_zeros(const Point& others, double z) const;
  std::vector<Point> numbers_;  // by fraction
};

// A recipe that was considered.
struct Trial {
  std::string recipe;
  const char* why = "";  // it was not tried; "": it was
  double rest = 1;       // what is left of lines that are not zeros
  double sampled = 1;    // the same of the first sample, before a block was tried
  double ratio = 1;
  bool may_find_rows = false;     // its speed may be that of rows
  size_t tried = 0;               // bytes that were compressed for the ratio
  bool timed = false;             // encode is of a block of such data
  double encode = 0, decode = 0;  // bytes a second, one thread
  double finish = 0;              // seconds a byte until the other side has it (model)
  double pace = 1, prior = 0;     // the machine's, in the two; finish without it and not timed
};

class Chooser {
 public:
  // Finds the candidates for such data and calibrates those that this process has not seen.
  Status begin(const Goal& goal, const Header& header, const char* engine);
  // All groups to come are tried, as those of the first frame.
  void forget() { known_.clear(); }
  // Whether a candidate wants blocks of whole rows.
  bool wants_slabs() const { return wants_slabs_; }
  // The recipe for a group of blocks, of which the first has block_size bytes at most.
  Status choose(ConstBytes group, size_t block_size, Recipe* recipe);

  // About the last group.
  const Features& features() const { return known_[now_].look; }
  const std::vector<Trial>& trials() const { return known_[now_].trials; }
  size_t chosen() const { return known_[now_].chosen; }
  bool reused() const { return reused_; }  // it looks like an earlier group

 private:
  static constexpr size_t kMostKnown = 32, kMostTimed = 8;
  // What encoding a block took, at least, of data that look alike and of which a sample left as
  // much.
  struct Timed {
    Features look;
    double sampled, encode;  // seconds a byte
  };
  struct Candidate {
    Recipe recipe;
    std::shared_ptr<Chain> chain;
    std::string text;
    bool matching;  // lives of repeated words
    const Speed* speed = nullptr;
    double gain = 1;           // how much less a block of the frame left than a sample of it
    std::vector<Timed> timed;  // the last kMostTimed kinds of data, from frame to frame
    const Timed* find_timed(const Features& look, double sampled) const;  // or nullptr
    void note_timed(const Features& look, double sampled, double encode);
  };
  // What was decided for groups that look alike.
  struct Known {
    Features look;
    std::vector<Trial> trials;
    size_t chosen = 0;
    double frame_bytes = 0;  // of the frame that it was decided for, of which finish times are
    size_t frames = 0;       // that began since
    bool weighed = true;     // in this frame
    bool stands(double bytes) const {
      return frames == 0 || (bytes <= 2 * frame_bytes && frame_bytes <= 2 * bytes);
    }
  };
  void age_known();
  void weigh_again(Known* known);
  size_t best_of(const std::vector<Trial>& trials) const;
  bool find_known(const Features& look);
  Status copy_windows(ConstBytes group, ConstBytes* windows);
  Status try_all(ConstBytes group, size_t block_size, const Known* like, Known* known);
  Status try_block(ConstBytes group, size_t block_size, Known* known);
  Status add(const std::string& text, bool matching, const Header& header, const char* engine);
  double pace_of(const Candidate& candidate) const;
  Speed::Point in_frame(const Candidate& candidate, Speed::Point speed, double fraction,
                        double pace) const;
  Speed::Point in_frame(const Candidate& candidate, const Speed::Point& speed,
                        double fraction) const;
  const char* hopeless(const Candidate& candidate, const Features& look, double best) const;
  bool hopes(const Candidate& candidate, const Features& look, double best) const;
  double left_for_trials(double finish) const;
  Status check_speed(size_t size);
  Status try_windows(const Candidate& candidate, const Features& look, ConstBytes group,
                     size_t block_size, Trial* trial);
  Status try_stretch(const Candidate& candidate, const Features& look, ConstBytes group,
                     Trial* trial);
  double hope(const Candidate& candidate, const Features& look, const Trial& trial) const;
  Status try_whole(Candidate* candidate, const Features& look, ConstBytes block, double best,
                   Trial* trial);
  Status try_sample(const Candidate& candidate, const Features& look, ConstBytes sample,
                    size_t piece, Trial* trial);
  Status ratio_of(const Candidate& candidate, ConstBytes sample, size_t piece, double* ratio);
  double finish_of(const Speed::Point& speed, double fraction) const;
  bool finds_rows(const Candidate& candidate) const;
  void weigh(const Candidate& candidate, const Features& look, Trial* trial) const;
  bool better(const Trial& a, const Trial& b) const;

  Goal goal_;
  DType dtype_ = DType::kBytes;
  int block_log_ = 0;
  std::string begun_;  // for what; candidates are kept from frame to frame
  std::vector<Candidate> candidates_;
  bool wants_slabs_ = false;
  size_t row_step_ = 0;       // four rows, in bytes
  std::vector<Known> known_;  // the last kMostKnown
  size_t now_ = 0;            // in known_
  // How far looks may lie apart: twice as far after each trial that led to the choice before it.
  double tolerance_ = 2;
  bool reused_ = false;
  uint64_t frame_size_ = 0;                // 0: not known
  double frame_bytes_ = 0, n_blocks_ = 0;  // of the group at least
  double spent_ = 0;                       // seconds on trials that may well fail
  double copy_ = 0, hash_ = 0;             // seconds a byte
  bool copied_ = false;                    // the group's windows lie in windows_
  Buffer windows_, code_;
};

Features features_of(ConstBytes group, DType dtype);

}  // namespace wirepress

// SPDX-License-Identifier: Apache-2.0
#include "migrate.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace rtm {
namespace {

// Seconds of one worker, on a cache line of its own.
struct alignas(128) WorkerTimes {
  double storage = 0, barrier = 0;
};

PassTimes summary(const std::vector<WorkerTimes>& workers, double wall) {
  PassTimes times{wall, 0, 0};
  for (const WorkerTimes& worker : workers) {
    times.storage += worker.storage / static_cast<double>(workers.size());
    times.barrier += worker.barrier / static_cast<double>(workers.size());
  }
  return times;
}

void add(PassTimes* to, const PassTimes& times) {
  to->wall += times.wall;
  to->storage += times.storage;
  to->barrier += times.barrier;
}

void add(wpr_store_stats* to, const wpr_store_stats& s) {
  to->puts += s.puts;
  to->gets += s.gets;
  to->raw_bytes += s.raw_bytes;
  to->stored_bytes += s.stored_bytes;
  to->read_ahead += s.read_ahead;
  to->dropped += s.dropped;
  to->spilled += s.spilled;
  to->buffer_bytes = std::max(to->buffer_bytes, s.buffer_bytes);
  to->put_wait_seconds += s.put_wait_seconds;
  to->put_copy_seconds += s.put_copy_seconds;
  to->get_wait_seconds += s.get_wait_seconds;
  to->get_copy_seconds += s.get_copy_seconds;
  to->longest_put_wait_seconds = std::max(to->longest_put_wait_seconds, s.longest_put_wait_seconds);
  to->longest_get_wait_seconds = std::max(to->longest_get_wait_seconds, s.longest_get_wait_seconds);
  to->compress_seconds += s.compress_seconds;
  to->write_seconds += s.write_seconds;
  to->read_seconds += s.read_seconds;
  to->expand_seconds += s.expand_seconds;
}

// One shot on its way: the parts that hooks need.
class Shot {
 public:
  Shot(Wave& wave, Team& team, const Survey& survey, std::pair<int, int> place, Progress& progress)
      : wave_(wave), team_(team), survey_(survey), progress_(progress) {
    const int sponge = wave.grid().sponge;
    source_x_ = place.first + sponge;
    source_y_ = place.second + sponge;
    source_z_ = survey.source_depth + sponge;
    receiver_z_ = survey.receiver_depth + sponge;
    source_c2_ = wave.c2(place.first, place.second, survey.source_depth);
    const Size image = wave.grid().image;
    heard_.n_x = survey.receivers_x(image);
    heard_.n_y = survey.receivers_y(image);
  }

  // Forward; frames may be NULL.
  PassTimes forward(const char* name, Frames* frames) {
    wave_.clear(team_);
    heard_.values.assign(heard_.n() * static_cast<size_t>(survey_.n_steps), 0);
    return propagate(name, [&](int t, std::vector<WorkerTimes>& times, Hooks* hooks) {
      const float amplitude =
          source_c2_ * ricker(survey_.frequency, static_cast<float>(t) * survey_.time_step);
      hooks->plane = [this, t, amplitude](int, float* plane, int z, int y0, int y1) {
        if (z == source_z_ && y0 <= source_y_ && source_y_ < y1)
          plane[source_y_ * wave_.after(t).row() + source_x_] += amplitude;
        if (z == receiver_z_) hear(t, plane, y0, y1);
      };
      hooks->tile = nullptr;
      if (!frames || t % survey_.every != 0) return;
      hooks->tile = [this, t, frames, &times](int worker, int z, int y) {
        const double began = now();
        const Field& field = wave_.after(t);
        const Tiling& tiling = wave_.tiling();
        frames->put(t, z, y, field.image_at(0, y * tiling.n_y, z * tiling.n_z), field.row(),
                    field.plane());
        times[static_cast<size_t>(worker)].storage += now() - began;
      };
    });
  }

  // Backward with what the receivers are to say; frames and image may be NULL.
  PassTimes backward(const Traces& said, Frames* frames, Image* image) {
    wave_.clear(team_);
    const int last = (survey_.n_steps - 1) / survey_.every * survey_.every;
    if (frames) frames->read_backwards_from(last);
    const Tiling& tiling = wave_.tiling();
    const Size size = wave_.grid().image;
    std::vector<std::vector<float>> tiles(
        static_cast<size_t>(team_.size()),
        std::vector<float>(static_cast<size_t>(size.x) * static_cast<size_t>(tiling.n_y) *
                           static_cast<size_t>(tiling.n_z)));
    return propagate("backward", [&](int i, std::vector<WorkerTimes>& times, Hooks* hooks) {
      const int t = survey_.n_steps - 1 - i;  // the step of the forward pass at this time
      hooks->plane = [this, t, i, &said](int, float* plane, int z, int y0, int y1) {
        if (z == receiver_z_) say(said.at(t), plane, wave_.after(i).row(), y0, y1);
      };
      hooks->tile = nullptr;
      if (!frames || t % survey_.every != 0) return;
      hooks->tile = [this, t, i, frames, image, &times, &tiles](int worker, int z, int y) {
        float* tile = tiles[static_cast<size_t>(worker)].data();
        const double began = now();
        frames->get(t, z, y, tile);
        times[static_cast<size_t>(worker)].storage += now() - began;
        correlate(tile, wave_.after(i), z, y, image);
      };
    });
  }

  Traces& heard() { return heard_; }

 private:
  void hear(int t, const float* plane, int y0, int y1) {
    each_receiver(y0, y1, wave_.after(t).row(),
                  [&, out = heard_.at(t)](size_t i, ptrdiff_t cell) { out[i] = plane[cell]; });
  }

  void say(const float* values, float* plane, ptrdiff_t row, int y0, int y1) {
    each_receiver(y0, y1, row,
                  [&](size_t i, ptrdiff_t cell) { plane[cell] += source_c2_ * values[i]; });
  }

  void each_receiver(int y0, int y1, ptrdiff_t row, auto body) const {
    const int sponge = wave_.grid().sponge, step = survey_.receiver_step;
    for (int j = 0; j < heard_.n_y; ++j) {
      const int y = sponge + j * step;
      if (y < y0 || y >= y1) continue;
      for (int k = 0; k < heard_.n_x; ++k)
        body(static_cast<size_t>(j) * static_cast<size_t>(heard_.n_x) + static_cast<size_t>(k),
             y * row + sponge + k * step);
    }
  }

  // Source's tile times receivers' wave, in the cache of the worker.
  void correlate(const float* source, const Field& receivers, int tile_z, int tile_y,
                 Image* image) const {
    const Tiling& tiling = wave_.tiling();
    const Size size = wave_.grid().image;
    const int y0 = tile_y * tiling.n_y, y1 = std::min(size.y, y0 + tiling.n_y);
    const int z0 = tile_z * tiling.n_z, z1 = std::min(size.z, z0 + tiling.n_z);
    for (int z = z0; z < z1; ++z) {
      for (int y = y0; y < y1; ++y, source += size.x) {
        const size_t first =
            (static_cast<size_t>(z) * static_cast<size_t>(size.y) + static_cast<size_t>(y)) *
            static_cast<size_t>(size.x);
        const float* heard = receivers.image_at(0, y, z);
        float* correlation = image->correlation.data() + first;
        float* illumination = image->illumination.data() + first;
        for (int x = 0; x < size.x; ++x) {
          correlation[x] += source[x] * heard[x];
          illumination[x] += source[x] * source[x];
        }
      }
    }
  }

  // All steps; prepare(i, times, hooks) makes each worker's hooks of step i.
  template <class Prepare>
  PassTimes propagate(const char* name, const Prepare& prepare) {
    std::vector<WorkerTimes> times(static_cast<size_t>(team_.size()));
    const double began = now();
    team_.run([&](int worker) {
      Hooks hooks;
      for (int i = 0; i < survey_.n_steps && !team_.failed(); ++i) {
        prepare(i, times, &hooks);
        wave_.step(worker, i, hooks);
        const double done = now();
        team_.meet();
        times[static_cast<size_t>(worker)].barrier += now() - done;
        if (worker == 0) progress_.show(name, i + 1, survey_.n_steps);
      }
    });
    return summary(times, now() - began);
  }

  Wave& wave_;
  Team& team_;
  const Survey& survey_;
  Progress& progress_;
  int source_x_, source_y_, source_z_, receiver_z_;
  float source_c2_;
  Traces heard_;
};

// What the smooth earth does not explain: reflections, without the direct wave.
Traces residual(const Traces& observed, const Traces& predicted) {
  Traces result = observed;
  for (size_t i = 0; i < result.values.size(); ++i) result.values[i] -= predicted.values[i];
  return result;
}

}  // namespace

void Progress::show(const char* pass, int done, int of) {
  if (!shown_) return;
  const double time = now();
  if (done == 1) began_ = time;
  if (time - last_ < 0.1 && done < of) return;
  last_ = time;
  constexpr int kWidth = 30;
  char bar[kWidth + 1];
  for (int i = 0; i < kWidth; ++i) bar[i] = i * of < done * kWidth ? '#' : '.';
  bar[kWidth] = 0;
  const double left = done > 1 ? (time - began_) / (done - 1) * (of - done) : 0;
  std::fprintf(stderr, "\r%s: %-8s [%s] %3d %%, %.0f s left  ", what_.c_str(), pass, bar,
               100 * done / of, left);
}

void Progress::end() {
  if (shown_) std::fprintf(stderr, "\r%*s\r", 100, "");
}

std::vector<float> Image::normalised() const {
  const float most = *std::max_element(illumination.begin(), illumination.end());
  const float least = most > 0 ? 1e-4F * most : 1;
  std::vector<float> result(correlation.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = correlation[i] / (illumination[i] + least);
  return result;
}

Traces listen(Wave& wave, Team& team, const Survey& survey, size_t shot, Progress& progress) {
  Shot here(wave, team, survey, survey.shots[shot], progress);
  here.forward("model", nullptr);
  return std::move(here.heard());
}

Migration migrate(Wave& wave, Team& team, const Survey& survey, const Storage& storage,
                  const std::vector<Traces>& observed, Image* image, Progress& progress) {
  Migration result;
  for (size_t i = 0; i < survey.shots.size(); ++i) {
    Storage mine = storage;
    if (survey.shots.size() > 1) mine.path += "." + std::to_string(i);
    std::optional<Frames> frames;
    if (storage.policy != "none") frames.emplace(mine, wave.grid().image, wave.tiling());
    Shot shot(wave, team, survey, survey.shots[i], progress);
    add(&result.times.forward, shot.forward("forward", frames ? &*frames : nullptr));
    const Traces said = residual(observed[i], shot.heard());
    add(&result.times.backward, shot.backward(said, frames ? &*frames : nullptr, image));
    if (i == 0) result.predicted = std::move(shot.heard());
    if (!frames) continue;
    if (i == 0) result.frames = frames->list();
    result.direct = frames->is_direct();
    const double began = now();
    frames->close();
    result.times.finish += now() - began;
    add(&result.stats, frames->stats());
  }
  return result;
}

}  // namespace rtm

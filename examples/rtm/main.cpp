// SPDX-License-Identifier: Apache-2.0
// Reverse time migration on the frame store. README.md says what it shows.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "options.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "rivals.hpp"

namespace rtm {
namespace {

Model read_velocity(const std::string& path, Size size) {
  Model model{size, std::vector<float>(size.n())};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  file.read(reinterpret_cast<char*>(model.v.data()), static_cast<std::streamsize>(4 * size.n()));
  if (!file || file.peek() != EOF)
    throw std::runtime_error(path + " has not the " + std::to_string(4 * size.n()) +
                             " bytes of float32 that --size says");
  for (const float v : model.v) {
    if (!(v > 0 && v < 1e5F))
      throw std::runtime_error(path + ": a velocity is " + std::to_string(v) + " m/s");
  }
  return model;
}

Survey survey_of(const Options& o, const Model& model) {
  Survey survey;
  survey.spacing = o.spacing;
  survey.frequency = o.frequency;
  survey.time_step = stable_time_step(o.spacing, model.fastest());
  survey.every = o.every;
  survey.receiver_step = o.receiver_step;
  survey.n_steps = o.steps;
  if (o.steps == 0) {  // down and up the slowest column, and the wavelet
    double way = 0;
    for (int z = 0; z < model.size.z; ++z)
      way += 2 * o.spacing / model.at(model.size.x / 2, model.size.y / 2, z);
    survey.n_steps = static_cast<int>((way + 2.4 / o.frequency) / survey.time_step) + 1;
  }
  for (int i = 0; i < o.shots; ++i)
    survey.shots.emplace_back(model.size.x * (i + 1) / (o.shots + 1), model.size.y / 2);
  return survey;
}

// The policies and recipes to run, a reference first.
std::vector<Storage> storages_of(const Options& o) {
  std::vector<Storage> list;
  for (const std::string& policy : o.policies) {
    Storage storage = o.storage;
    storage.policy = policy;
    for (const std::string& recipe :
         compresses(policy) ? o.recipes : std::vector<std::string>{""}) {
      storage.recipe = recipe;
      list.push_back(storage);
    }
  }
  const auto plain = [](const Storage& s) { return !compresses(s.policy) && s.policy != "none"; };
  const bool packs =
      !o.rivals.empty() ||
      std::any_of(list.begin(), list.end(), [](const Storage& s) { return compresses(s.policy); });
  const auto reference = std::find_if(list.begin(), list.end(), plain);
  if (reference != list.end()) {
    std::rotate(list.begin(), reference, reference + 1);
  } else if (packs) {
    list.insert(list.begin(), o.storage);
  }
  return list;
}

class Program {
 public:
  explicit Program(const Options& options)
      : o_(options),
        earth_(o_.velocity.empty() ? make_model(o_.model, o_.size, o_.seed)
                                   : read_velocity(o_.velocity, o_.size)),
        known_(smoothed(earth_, o_.smooth)),
        survey_(survey_of(o_, earth_)) {
    report_.options = o_;
    report_.survey = survey_;
    report_.frame_size = 4 * o_.size.n();
  }

  void run() {
    observe();
    for (const int threads : o_.threads) run_on(threads);
    const Size s = o_.size;
    report_.reflectors = reflectors(earth_, s.x / 2, s.y / 2, 0.03F);
    const std::vector<float> sharp = image_.empty() ? std::vector<float>() : sharpened(image_, s);
    for (int z = 0; z < s.z && !sharp.empty(); ++z)
      report_.column.push_back(sharp[earth_.index(s.x / 2, s.y / 2, z)]);
    print_table(report_);
    if (!o_.json.empty()) write_json(report_, o_.json);
    if (!o_.gather.empty()) draw_gather();
    if (!o_.image.empty() && !image_.empty()) draw_image(sharp);
  }

 private:
  Grid grid() const { return {o_.size, o_.sponge}; }

  void observe() {
    Team team(*std::max_element(o_.threads.begin(), o_.threads.end()), o_.pin);
    Wave wave(grid(), earth_, o_.spacing, survey_.time_step, team,
              tiling_for(o_.size, team.size()));
    Progress progress(o_.progress, "the earth");
    const double began = now();
    for (size_t shot = 0; shot < survey_.shots.size(); ++shot)
      observed_.push_back(listen(wave, team, survey_, shot, progress));
    report_.model_seconds = now() - began;
    progress.end();
  }

  void run_on(int threads) {
    Team team(threads, o_.pin);
    Wave wave(grid(), known_, o_.spacing, survey_.time_step, team, tiling_for(o_.size, threads));
    report_.kernel = wave.kernel();
    report_.n_points = wave.n_points();
    if (o_.roofline) report_.rooflines.emplace_back(threads, measure_roofline(wave, team, 3));
    const size_t first = report_.runs.size();
    for (const Storage& storage : storages_of(o_)) run_one(wave, team, storage);
    if (threads != o_.threads.back()) return;  // images do not depend on it
    for (const std::string& rival : o_.rivals) {
      const size_t its = run_compressed(wave, team, rival, first);
      Peers peers{its, {}};
      for (const Scale& scale : scales()) {
        if (std::find(o_.match.begin(), o_.match.end(), scale.recipe) == o_.match.end()) continue;
        const int n = most_exact(scale, report_.runs[its].stats.stored_bytes, [&](int tried) {
          const size_t i = run_compressed(wave, team, scale.at(tried), first);
          return report_.runs[i].stats.stored_bytes;
        });
        if (n >= scale.least) peers.ours.push_back(run_compressed(wave, team, scale.at(n), first));
      }
      report_.peers.push_back(std::move(peers));
    }
  }

  // Where the run by this recipe is, among those from `first` on; it is made where there is none.
  size_t run_compressed(Wave& wave, Team& team, const std::string& recipe, size_t first) {
    for (size_t i = first; i < report_.runs.size(); ++i)
      if (report_.runs[i].policy == "compressed" && report_.runs[i].recipe == recipe) return i;
    Storage storage = o_.storage;
    storage.policy = "compressed";
    storage.recipe = recipe;
    run_one(wave, team, storage);
    return report_.runs.size() - 1;
  }

  void run_one(Wave& wave, Team& team, Storage storage) {
    const std::string name = storage.policy + (storage.recipe.empty() ? "" : " " + storage.recipe);
    Progress progress(o_.progress, name + ", " + std::to_string(team.size()));
    storage.path = o_.folder + "/rtm-" + std::to_string(::getpid()) + "-" +
                   std::to_string(report_.runs.size()) + "-" + storage.policy + ".frames";
    const Removal removal{o_.keep ? std::string() : storage.path};
    Image image{o_.size, std::vector<float>(o_.size.n()), std::vector<float>(o_.size.n())};
    Migration migration = migrate(wave, team, survey_, storage, observed_, &image, progress);
    progress.end();
    Run run{storage.policy,
            compresses(storage.policy) ? storage.recipe : "",
            team.size(),
            migration.times,
            migration.stats,
            std::move(migration.frames),
            {},
            migration.direct};
    if (storage.policy != "none") {
      image_ = image.normalised();
      if (reference_.empty()) reference_ = image_;
      run.difference = difference(reference_, image_);
    }
    report_.runs.push_back(std::move(run));
    predicted_ = std::move(migration.predicted);
  }

  // A vertical slice along x, through the middle of y; each depth as bright as the others.
  void draw_image(const std::vector<float>& sharp) const {
    const Size s = o_.size;
    std::vector<float> slice;
    for (int z = 0; z < s.z; ++z) {
      const auto first = sharp.begin() + static_cast<ptrdiff_t>(earth_.index(0, s.y / 2, z));
      slice.insert(slice.end(), first, first + s.x);
    }
    level_rows(&slice, s.x);
    write_png(o_.image, slice, s.x, s.z);
    write_npy(std::filesystem::path(o_.image).replace_extension(".npy"), image_, s);
  }

  // Time goes down, and what comes late is amplified; the first shot.
  void draw_gather() const {
    const Traces& heard = observed_[0];
    const int height = std::min(survey_.n_steps, 2 * heard.n_x);
    std::vector<float> rows;
    for (int row = 0; row < height; ++row) {
      const int t = row * survey_.n_steps / height;
      const size_t first = static_cast<size_t>(heard.n_y / 2) * static_cast<size_t>(heard.n_x);
      for (size_t i = first; i < first + static_cast<size_t>(heard.n_x); ++i)
        rows.push_back(heard.at(t)[i] - predicted_.at(t)[i]);
    }
    level_rows(&rows, heard.n_x);
    write_png(o_.gather, rows, heard.n_x, height);
  }

  // Removes a run's files of frames, also where it failed.
  struct Removal {
    std::string path;
    ~Removal() {
      if (path.empty()) return;
      std::error_code error;
      std::filesystem::remove(path, error);
      for (int shot = 0; std::filesystem::remove(path + "." + std::to_string(shot), error);
           ++shot) {
      }
    }
  };

  Options o_;
  Model earth_, known_;
  Survey survey_;
  Report report_;
  std::vector<Traces> observed_;
  Traces predicted_;
  std::vector<float> reference_, image_;
};

}  // namespace
}  // namespace rtm

int main(int argc, char** argv) {
  try {
    rtm::Options options;
    if (!rtm::read_options(argc, argv, &options)) return 0;
    rtm::Program(options).run();
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "rtm: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rtm: %s\n", error.what());
    return 1;
  }
  return 0;
}

// What a life is measured by.

#ifndef WAYBILL_TESTS_SIMULATION_FIGURES_H_
#define WAYBILL_TESTS_SIMULATION_FIGURES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/timeline.h"

namespace waybill::simulation {

struct Figures {
  static constexpr std::size_t kExamples = 5;

  std::uint64_t decisions = 0;  // of which the rest are questions out of turn: they change nothing
  std::uint64_t opened = 0;
  std::uint64_t rightful = 0;        // questions of pods that had a right to the image on the node
  std::uint64_t wrong_closings = 0;  // of those
  // Openings that limits explain.
  std::uint64_t late = 0;
  std::uint64_t partial_lists = 0;
  std::uint64_t retagged = 0;
  std::uint64_t lost = 0;
  std::uint64_t opened_by_kubelet = 0;  // wrongly, by one beside it; where there is one
  std::uint64_t presumed = 0;
  std::map<std::string, std::uint64_t> wrong_openings = {};  // by what makes them wrong

  std::size_t open_pulls_most = 0;
  std::size_t open_pulls_after_storm_most = 0;
  Millis pull_stuck_longest = 0;           // an open pull, after its end
  Millis refused_longest = 0;              // an image, for all that had a right to it
  std::vector<Millis> waits = {};          // of pods that had a right to what was refused
  std::vector<std::string> examples = {};  // histories of the first wrong closings

  void Add(const Figures& other) {
    decisions += other.decisions;
    opened += other.opened;
    rightful += other.rightful;
    wrong_closings += other.wrong_closings;
    late += other.late;
    partial_lists += other.partial_lists;
    retagged += other.retagged;
    lost += other.lost;
    opened_by_kubelet += other.opened_by_kubelet;
    presumed += other.presumed;
    for (const auto& [why, number] : other.wrong_openings) wrong_openings[why] += number;
    open_pulls_most = std::max(open_pulls_most, other.open_pulls_most);
    open_pulls_after_storm_most =
        std::max(open_pulls_after_storm_most, other.open_pulls_after_storm_most);
    pull_stuck_longest = std::max(pull_stuck_longest, other.pull_stuck_longest);
    refused_longest = std::max(refused_longest, other.refused_longest);
    waits.insert(waits.end(), other.waits.begin(), other.waits.end());
    examples.insert(examples.end(), other.examples.begin(), other.examples.end());
    if (examples.size() > kExamples) examples.resize(kExamples);
  }
  // The longest of the shortest `percent`; 0: nobody waited.
  Millis WaitOf(std::size_t percent) const {
    if (waits.empty()) return 0;
    std::vector<Millis> sorted = waits;
    const auto at =
        sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) * percent / 100);
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  }
  double WrongClosingsIn1000() const {
    return rightful == 0
               ? 0.0
               : 1000.0 * static_cast<double>(wrong_closings) / static_cast<double>(rightful);
  }
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_FIGURES_H_

// The same decisions through C and through Go, beside C++. In turn, each opens the store, asks all
// questions once, and then a timed batch of them. Go runs in a process of its own.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "bench/micro/rows.h"
#include "bindings/c/waybill.h"

namespace waybill::bench {

namespace {

// Asks the questions in order by `hit`: first all of them once, then `batch` of them timed. Returns
// nanoseconds a decision.
template <typename Hit>
double Ask(const Questions& questions, std::size_t batch, const Hit& hit) {
  std::size_t hits = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) hits += hit(questions[i]) ? 1 : 0;
  const double took = NanosecondsOf([&] {
    for (std::size_t i = 0; i < batch; ++i) hits += hit(questions[i % questions.size()]) ? 1 : 0;
  });
  if (hits != questions.size() + batch) {
    throw std::runtime_error("a decision did not hit; the figures are void");
  }
  return took / static_cast<double>(batch);
}

double AskInCxx(ScratchStore& store, const Questions& questions, std::size_t batch) {
  store.Open();
  const double each = Ask(questions, batch, [&](const Question& q) {
    FixedCredentials credentials({.secrets = {&q.secret, 1}, .service_account = {}});
    return !store->MustAttemptPull({.image = q.image, .image_ref = q.image_ref}, credentials).pull;
  });
  store.Close();
  return each;
}

waybill_string ToC(std::string_view text) { return {text.data(), text.size()}; }

double AskInC(const ScratchStore& store, const Questions& questions, std::size_t batch) {
  const std::string directory = store.directory().string();
  waybill_open_options options{};
  options.struct_size = sizeof(options);
  options.directory = ToC(directory);
  options.witness_kind = WAYBILL_WITNESS_REMEMBERED;
  waybill_store* opened = nullptr;
  if (waybill_open(&options, &opened, nullptr) != WAYBILL_OK) {
    throw std::runtime_error("C cannot open the store in " + directory);
  }
  const double each = Ask(questions, batch, [&](const Question& q) {
    const waybill_image_pull_secret secret{ToC(q.secret.uid), ToC(q.secret.namespace_name),
                                           ToC(q.secret.name), ToC(q.secret.credential_hash)};
    const waybill_pod_credentials pod{&secret, 1, nullptr};
    return !waybill_must_attempt_pull(opened,
                                      {.image = ToC(q.image), .image_ref = ToC(q.image_ref)}, &pod)
                .pull;
  });
  waybill_store_free(opened);
  return each;
}

// The program prints nanoseconds a decision.
double AskInGo(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 64> line{};
  const bool printed = pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pipe == nullptr || pclose(pipe) != 0 || !printed) {
    throw std::runtime_error("this failed: " + command);
  }
  return std::stod(line.data());
}

void WriteQuestions(const Questions& questions, const std::filesystem::path& path) {
  std::ofstream file(path);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Question& q = questions[i];
    file << q.image << '\t' << q.image_ref << '\t' << q.secret.uid << '\t'
         << q.secret.namespace_name << '\t' << q.secret.name << '\t' << q.secret.credential_hash
         << '\n';
  }
}

}  // namespace

void MeasureBindings(const Micro& micro, const MicroStore& on, const std::string& go_program) {
  const std::filesystem::path list = micro.scratch.path() / "questions.tsv";
  WriteQuestions(on.questions, list);
  on.store.Close();
  const std::size_t batch = micro.quick ? 10 : 20'000;
  const auto row = [&](const char* through, const std::function<double()>& ask) {
    const auto body = [&](State& state) {
      for (auto _ : state) {
        state.counters[kBare] = AskInCxx(on.store, on.questions, batch);
        state.SetIterationTime(ask() / 1e9);
      }
    };
    micro.Row(std::string("MustAttemptPull: hit, through ") + through, body, {.iterations = 1});
  };
  row("C", [&] { return AskInC(on.store, on.questions, batch); });
  if (!go_program.empty()) {
    const std::string command = fmt::format("'{}' '{}' '{}' {}", go_program,
                                            on.store.directory().string(), list.string(), batch);
    row("Go", [&] { return AskInGo(command); });
  }
  on.store.Open();
}

}  // namespace waybill::bench

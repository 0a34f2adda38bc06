// The same decisions through C and through Go, beside C++. In turn, each opens the store, asks all
// questions once, and then a timed batch of them. Go runs in a process of its own.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

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
  const double each =
      Ask(questions, batch, [&](const Question& q) { return !Decide(*store, q).pull; });
  store.Close();
  return each;
}

waybill_text ToC(std::string_view text) { return {text.data(), text.size()}; }

// Opens the store in C, and measures `hit`, which gets the store and a question.
template <typename Hit>
double AskInC(const ScratchStore& store, const Questions& questions, std::size_t batch,
              const Hit& hit) {
  const std::string directory = store.directory().string();
  waybill_store* opened = nullptr;
  if (waybill_open(ToC(directory), WAYBILL_REMEMBERED_LOSS_MARKER, WAYBILL_NONE, &opened,
                   nullptr) != WAYBILL_OK ||
      waybill_serve(opened, nullptr) != WAYBILL_OK) {
    throw std::runtime_error("C cannot open the store in " + directory);
  }
  const double each =
      Ask(questions, batch, [&](const Question& question) { return hit(opened, question); });
  waybill_store_free(opened);
  return each;
}

bool DecideInC(waybill_store* store, const Question& q) {
  const waybill_credential secret{ToC(q.secret.namespace_name), ToC(q.secret.name),
                                  ToC(q.secret.uid), ToC(q.secret.credential_hash)};
  waybill_credentials pod{};
  pod.secrets = &secret;
  pod.secret_count = 1;
  return waybill_decide(
             store, {.image = ToC(q.image), .image_ref = ToC(q.image_ref), .runtime_handler = {}},
             &pod)
      .use;
}

// `call` takes the parameters of MustPull as JSON.
template <typename Call>
bool IsHit(const Question& q, const Call& call) {
  const std::string parameters = fmt::format(
      R"({{"image":"{}","imageRef":"{}","secrets":[{{"namespace":"{}","name":"{}","uid":"{}","hash":"{}"}}]}})",
      q.image, q.image_ref, q.secret.namespace_name, q.secret.name, q.secret.uid,
      q.secret.credential_hash);
  char* answer = nullptr;
  const bool hit = call(ToC(parameters), &answer) == WAYBILL_OK &&
                   std::string_view(answer).starts_with(R"({"pull":false)");
  waybill_free(answer);
  return hit;
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

void MeasureBindings(const Micro& micro, const MicroStore& on) {
  const std::filesystem::path list = micro.scratch.path() / "questions.tsv";
  WriteQuestions(on.questions, list);
  on.store.Close();
  const std::size_t batch = micro.quick ? 10 : 20'000;
  const auto row = [&](const char* name, const std::function<double()>& ask) {
    const auto body = [&](State& state) {
      for (auto _ : state) {
        state.counters[kBare] = AskInCxx(on.store, on.questions, batch);
        state.SetIterationTime(ask() / 1e9);
      }
    };
    micro.Row(name, body, {.iterations = 1});
  };
  row("MustAttemptPull: hit, through C",
      [&] { return AskInC(on.store, on.questions, batch, DecideInC); });
  row("MustPull as JSON, through C", [&] {
    return AskInC(on.store, on.questions, batch, [](waybill_store* store, const Question& q) {
      return IsHit(q, [&](waybill_text parameters, char** answer) {
        return waybill_call(store, "MustPull", parameters, answer, nullptr);
      });
    });
  });
  const std::string directory = on.store.directory().string();
  row("MustPull as JSON, through the owner's socket", [&] {
    return AskInC(on.store, on.questions, batch / 10, [&](waybill_store*, const Question& q) {
      return IsHit(q, [&](waybill_text parameters, char** answer) {
        return waybill_ask(ToC(directory), "MustPull", parameters, 0, answer, nullptr);
      });
    });
  });
  if (!micro.text.empty()) {
    const std::string command = fmt::format("'{}' '{}' '{}' {}", micro.text,
                                            on.store.directory().string(), list.string(), batch);
    row("MustAttemptPull: hit, through Go", [&] { return AskInGo(command); });
  }
  on.store.Open();
}

}  // namespace waybill::bench

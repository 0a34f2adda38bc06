// What Store, Library and Streams add to what is below them: calls by name, checked parameters, and
// changes that are refused as a whole. serve_test.cc compares each call of a store in all its ways.

#include "store/api/door.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/api/opening.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(one_door)

namespace {

using internal::FromJson;
using internal::ToJson;
using internal::Type;

struct Opened {
  Opened() {
    OpenOptions options{.directory = scratch / "store", .loss_marker = scratch / "marker"};
    options.runtimes = {{.name = "runc", .is_default = true, .user_namespaces = true}};
    options.settings.map_bytes = std::uint64_t{64} << 20U;
    options.clocks = {clock.AsClock(), clock.AsBootClock()};
    store = Must(Store::Open(std::move(options)));
  }

  std::uint64_t commit() { return Must(store->Call(GetStatus())).commit; }
  std::string metrics() { return Must(store->Call(GetMetrics())).text; }
  std::uint64_t Begin(const std::string& image) {
    return Must(store->Call(BeginPull{.image = image})).pull;
  }
  void Pull(char digit, const std::optional<ImagePullCredentials>& credentials) {
    const std::string image = Name(digit);
    Must(store->Call(EndPull{.image = image,
                             .image_ref = Digest(digit),
                             .pull = Begin(image),
                             .outcome = PullOutcome::kPulled,
                             .credentials = credentials}));
  }
  bool Opens(char digit, const ImagePullSecret& secret) {
    return !Must(store->Call(MustPull{
                     .image = Name(digit), .image_ref = Digest(digit), .secrets = {secret}}))
                .pull;
  }
  static std::string Name(char digit) { return std::string("r.example/") + digit + ":v1"; }

  MemoryDir scratch;
  FakeClock clock;
  std::unique_ptr<Store> store;
};

struct OpenedStreams {
  OpenedStreams() {
    StreamOptions options{.directory = scratch / "streams", .loss_marker = scratch / "marker"};
    store = Must(waybill::Streams::Open(std::move(options)));
  }
  MemoryDir scratch;
  std::unique_ptr<waybill::Streams> store;
};

// --- Values in which no member has its default

class Filler {
 public:
  void Fill(const Type& type, void* at) {
    const unsigned next = ++count_;
    switch (type.kind) {
      case Type::Kind::kBool:
        *static_cast<bool*>(at) = !*static_cast<bool*>(at);
        return;
      case Type::Kind::kReal:
        *static_cast<double*>(at) = 7.5 + next;
        return;
      case Type::Kind::kWhole: {
        // Little-endian, and small enough for any.
        const std::uint64_t number = type.size == 1 ? 7 + next % 100 : 7 + next;
        std::memcpy(at, &number, type.size);
        return;
      }
      case Type::Kind::kEnum: {
        std::uint8_t& number = *static_cast<std::uint8_t*>(at);
        const auto other = std::find_if(type.names.begin(), type.names.end(),
                                        [&](const auto& name) { return name.value != number; });
        if (other == type.names.end()) throw std::runtime_error("an enumeration of one");
        number = other->value;
        return;
      }
      case Type::Kind::kString:
        *static_cast<std::string*>(at) = "t" + std::to_string(next);
        return;
      case Type::Kind::kText:
        return FillText(type, at, std::to_string(next));
      case Type::Kind::kOptional:
      case Type::Kind::kList:
      case Type::Kind::kMap:
        type.clear(at);
        return Fill(*type.inner, type.add(at, "t" + std::to_string(next)));
      case Type::Kind::kStruct:
        for (const Type::Member& member : type.members) {
          Fill(*member.type, static_cast<char*>(at) + member.offset);
        }
        return;
    }
  }

 private:
  // The first that the type takes: a token, a boot time, a time, a path.
  static void FillText(const Type& type, void* at, const std::string& number) {
    const std::string boot = "0123456789abcdef0123456789abcdef";
    for (const std::string& text : {number + ".8.9." + boot, number + "." + boot,
                                    std::string("2026-01-02T03:04:05Z"), "/t" + number}) {
      if (type.from_text(text, at)) return;
    }
    throw std::runtime_error("a text of another form");
  }

  unsigned count_ = 0;
};

// All structs that a type is made of, too.
void CheckMembers(const Type& type, const void* value) {
  std::size_t members = 0;
  std::size_t written = 0;
  internal::EachField(type, value, true, [&](std::string_view, std::string_view) { ++members; });
  internal::EachField(type, value, false, [&](std::string_view, std::string_view) { ++written; });
  BOOST_TEST(members == written, type.name);
  for (const Type::Member& a : type.members) {
    // One that is named twice leaves another out.
    const auto same = std::count_if(type.members.begin(), type.members.end(), [&](const auto& b) {
      return a.offset < b.offset + b.type->size && b.offset < a.offset + a.type->size;
    });
    BOOST_TEST(same == 1, type.name << "." << a.name);
    const Type* inner = a.type;
    const void* at = static_cast<const char*>(value) + a.offset;
    while (inner->kind == Type::Kind::kOptional || inner->kind == Type::Kind::kList) {
      BOOST_TEST_REQUIRE(inner->count(at) == 1U);
      at = inner->item(at, 0);
      inner = inner->inner;
    }
    if (inner->kind == Type::Kind::kMap) {
      inner->each(at, [&](const std::string&, const void* item) {
        if (inner->inner->kind == Type::Kind::kStruct) CheckMembers(*inner->inner, item);
      });
    }
    if (inner->kind == Type::Kind::kStruct) CheckMembers(*inner, at);
  }
}

template <typename T>
void CheckRoundTrip() {
  BOOST_TEST_CONTEXT(internal::TypeName<T>()) {
    T value{};
    Filler().Fill(internal::TypeOf<T>(), &value);
    CheckMembers(internal::TypeOf<T>(), &value);
    const std::string text = ToJson(value);
    T read{};
    BOOST_TEST(FromJson(text, read, internal::Strangers::kRefuse) == "");
    BOOST_TEST(ToJson(read) == text);
    T lenient{};
    BOOST_TEST(FromJson(text, lenient, internal::Strangers::kSkip) == "");
    BOOST_TEST(ToJson(lenient) == text);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_described_type_survives_the_round_trip) {
#define WAYBILL_ROUND_TRIP(C)   \
  CheckRoundTrip<waybill::C>(); \
  CheckRoundTrip<waybill::C::Answer>();
  WAYBILL_READING_CALLS(WAYBILL_ROUND_TRIP)
  WAYBILL_CHANGING_CALLS(WAYBILL_ROUND_TRIP)
  WAYBILL_UNSERVED_CALLS(WAYBILL_ROUND_TRIP)
  WAYBILL_LIBRARY_CALLS(WAYBILL_ROUND_TRIP)
  WAYBILL_STREAM_CALLS(WAYBILL_ROUND_TRIP)
#undef WAYBILL_ROUND_TRIP
}

// --- Parameters

BOOST_FIXTURE_TEST_CASE(wrong_parameters_are_refused_with_their_place, Opened) {
  Pull('1', WithSecret(kSecretA));
  const std::uint64_t before = commit();
  const auto nested = [](int levels) {
    // The parameters are the first level.
    return R"({"image":)" + std::string(static_cast<std::size_t>(levels - 1), '[') +
           std::string(static_cast<std::size_t>(levels - 1), ']') + "}";
  };
  const std::string token = "7.8.9.0123456789abcdef0123456789abcdef";
  struct Row {
    const char* call;
    std::string parameters;
    const char* place;
  };
  const std::vector<Row> rows = {
      {"Nothing", "{}", "a store has no call \"Nothing\""},
      {"explain", "{}", "no call \"explain\""},
      {"", "{}", "no call \"\""},
      {"dev.waybill.GetStatus", "{}", "no call"},
      {"ParseImage", R"({"image":"a"})", "a store has no call"},  // of the library
      {"ListStreams", "{}", "a store has no call"},
      {"BeginPull", "", "parameters: image: it is missing"},
      {"BeginPull", "{}", "parameters: image: it is missing"},
      {"BeginPull", R"({"image":7})", "parameters: image: expected a string, at byte 9"},
      {"BeginPull", R"({"image":"a","Image":"a"})",
       "parameters: Image: this version does not know it"},
      {"BeginPull", nested(17), "parameters: image: "},
      {"DropPulls", R"({"image":"r.example/1:v1","dryRunn":true})",
       "parameters: dryRunn: this version does not know"},
      {"AllowImage", R"({"image":{"repoTags":[]},"reason":"why"})",
       "parameters: image.id: it is missing"},
      {"AllowImage", R"({"image":{"id":"x","repoTags":["a",7]},"reason":"why"})",
       "parameters: image.repoTags[1]: expected a string"},
      {"Revoke", R"({"kind":"secrets"})", "parameters: kind: it has no such value"},
      {"Revoke", R"({"kind":1})", "parameters: kind: expected a string"},
      {"PruneBefore", R"({"images":[],"before":"yesterday"})",
       "parameters: before: it has another form"},
      {"PruneBefore", R"({"images":[],"token":"7"})", "parameters: token: it has another form"},
      {"PruneBefore", R"({"images":[],"token":")" + token + R"(0"})", "parameters: token: "},
      {"ClaimUserNamespace", R"({"podUid":"p","hostUsers":false,"length":4294967296})",
       "parameters: length: the number is out of range"},
      {"EndPull", R"({"image":"r.example/1:v1","imageRef":"x"})",
       "parameters: outcome: it is missing"},
      {"EndPull", R"({"image":"r.example/1:v1","outcome":"pulled","credentials":{"secrets":[{}]}})",
       "parameters: credentials.secrets[0].namespace: it is missing"},
      {"Flush", R"({"now":true})", "parameters: now: this version does not know it"}};
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.call << " " << row.parameters) {
      const auto refused = store->CallJson(row.call, row.parameters);
      ExpectError(refused, ErrorCode::kInvalidArgument, row.place);
      ExpectError(refused, ErrorCode::kInvalidArgument, "nothing was changed");
      BOOST_TEST(!refused.error().hint.empty());
    }
  }
  BOOST_TEST(commit() == before);
  ExpectError(store->CallJson("BeginPull", nested(16)), ErrorCode::kInvalidArgument,
              "expected a string");
  ExpectError(store->CallJson(std::string(5000, 'x'), "{}"), ErrorCode::kInvalidArgument, "x");
  // Nothing at all is {}.
  BOOST_TEST(Must(store->CallJson("ListPulls", "")) == R"({"pulls":[]})");
  BOOST_TEST(Must(store->CallJson("Flush", " { } ")) == "{}");
}

// --- Calls that are refused

BOOST_FIXTURE_TEST_CASE(a_loss_marker_must_be_chosen, Opened) {
  const std::filesystem::path place = scratch / "other";
  ExpectError(Store::Open({.directory = place}), ErrorCode::kInvalidArgument,
              "no loss marker was chosen; nothing was changed");
  ExpectError(Store::Open({.directory = place}), ErrorCode::kInvalidArgument, "\"none\"");
  ExpectError(waybill::Streams::Open({.directory = place}), ErrorCode::kInvalidArgument,
              "no loss marker was chosen");
  BOOST_TEST(!std::filesystem::exists(place));
  // Or it would be a file in whatever directory this process works.
  for (const char* misspelt : {"None", "remember", "../marker"}) {
    ExpectError(Store::Open({.directory = place, .loss_marker = misspelt}),
                ErrorCode::kInvalidArgument, "no absolute path; nothing was changed");
  }
  Must(Must(Store::Open({.directory = place, .loss_marker = kNoLossMarker}))->Close());
  Must(Must(Store::Open({.directory = place, .loss_marker = kRememberedLossMarker}))->Close());
}

BOOST_FIXTURE_TEST_CASE(what_was_pulled_with_credentials_is_not_allowed_by_mistake, Opened) {
  Pull('1', WithSecret(kSecretA));
  Pull('2', {});
  AllowImage call{.image = {.id = Digest('1')}, .reason = "why"};
  const std::uint64_t before = commit();
  for (const bool dry_run : {true, false}) {
    call.dry_run = dry_run;
    ExpectError(store->Call(call), ErrorCode::kConflict, "othing was changed");
  }
  // By another spelling of it, too.
  ExpectError(store->Call(AllowImage{.image = {.id = Digest('1').substr(7)}, .reason = "why"}),
              ErrorCode::kConflict);
  BOOST_TEST(commit() == before);
  BOOST_TEST(!Opens('1', kSecretB));
  call.pulled_too = true;
  BOOST_TEST(Must(store->Call(call)).changed);
  BOOST_TEST(Opens('1', kSecretB));
  // Nobody knows with what it was pulled: it may be somebody's own.
  const AllowImage unknown{.image = {.id = Digest('2')}, .reason = "why"};
  ExpectError(store->Call(unknown), ErrorCode::kConflict, "othing was changed");
  BOOST_TEST(!Opens('2', kSecretB));
  // A credential that was revoked, and taken out of its record, had been somebody's.
  Pull('4', WithSecret(kSecretA));
  Must(store->Call(Revoke{.what = {.kind = RevocationKind::kImage, .image_ref = Digest('4')}}));
  ExpectError(store->Call(AllowImage{.image = {.id = Digest('4')}, .reason = "why"}),
              ErrorCode::kConflict);
  // Nobody's are these: one was never pulled, and one for every pod.
  Pull('5', NodeWide());
  for (const char digit : {'3', '5'}) {
    BOOST_TEST(
        Must(store->Call(AllowImage{.image = {.id = Digest(digit)}, .reason = "why"})).changed);
    BOOST_TEST(Opens(digit, kSecretB));
  }
}

BOOST_FIXTURE_TEST_CASE(pulls_are_dropped_by_number_or_name, Opened) {
  const std::string image = "r.example/x:v1";
  const auto end = [&](std::uint64_t pull) {
    Must(store->Call(EndPull{.image = image, .pull = pull, .outcome = PullOutcome::kUnknown}));
  };
  const auto left = [&] { return Must(store->Call(ListPulls())).pulls.size(); };
  const std::uint64_t ended = Begin(image);
  const std::uint64_t running = Begin(image);
  Begin("r.example/y:v1");
  end(ended);
  const std::uint64_t before = commit();
  ExpectError(store->Call(DropPulls{.reason = "why"}), ErrorCode::kInvalidArgument,
              "othing was changed");
  ExpectError(store->Call(DropPulls{.pull = ended, .image = image, .reason = "why"}),
              ErrorCode::kInvalidArgument);
  ExpectError(store->Call(DropPulls{.pull = ended}), ErrorCode::kInvalidArgument);  // no reason
  ExpectError(store->Call(DropPulls{.pull = 999, .reason = "why"}), ErrorCode::kNotFound);
  ExpectError(store->Call(DropPulls{.pull = running, .reason = "why"}), ErrorCode::kConflict);
  for (const char* other : {"r.example/z:v1", "r.example/x", "r.example/x:v2"}) {
    ExpectError(store->Call(DropPulls{.image = other, .reason = "why"}), ErrorCode::kNotFound,
                "othing was changed");
  }
  DropPulls by_number{.pull = ended, .reason = "why", .dry_run = true};
  BOOST_TEST(Must(store->Call(by_number)).dropped == 1U);
  // One of the two runs in this process.
  DropPulls by_name{.image = image, .dry_run = true};
  BOOST_TEST(Must(store->Call(by_name)).dropped == 1U);
  BOOST_TEST(commit() == before);
  BOOST_TEST(left() == 3U);
  by_number.dry_run = false;
  BOOST_TEST(Must(store->Call(by_number)).dropped == 1U);
  BOOST_TEST(left() == 2U);
  end(running);
  by_name.dry_run = false;
  ExpectError(store->Call(by_name), ErrorCode::kInvalidArgument);  // no reason
  by_name.reason = "why";
  by_name.runtime_handler = "runc";  // the default's name
  BOOST_TEST(Must(store->Call(by_name)).dropped == 1U);
  BOOST_TEST(left() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_pull_used_every_pod_or_some_secret, Opened) {
  EndPull call{.image = Name('1'),
               .image_ref = Digest('1'),
               .pull = Begin(Name('1')),
               .outcome = PullOutcome::kPulled,
               .credentials = WithSecret(kSecretA)};
  call.credentials->node_pods_accessible = true;
  const std::uint64_t before = commit();
  ExpectError(store->Call(call), ErrorCode::kInvalidArgument, "everyPod beside Secrets");
  ExpectError(store->EndPull({.image = call.image, .image_ref = call.image_ref}, {call.pull},
                             call.outcome, call.credentials),
              ErrorCode::kInvalidArgument, "nothing was changed");
  call.credentials = ImagePullCredentials{.node_pods_accessible = true,
                                          .kubernetes_service_accounts = {{"u", "n", "s"}}};
  ExpectError(store->Call(call), ErrorCode::kInvalidArgument);
  BOOST_TEST(commit() == before);
  BOOST_TEST(!Opens('1', kSecretA));
  call.credentials = NodeWide();
  Must(store->Call(call));
  BOOST_TEST(Opens('1', kSecretA));
}

// --- Lists in parts

namespace {

struct Parts : Opened {
  Parts() {
    Pull('1', WithSecret(kSecretA));
    Pull('2', WithSecret(kSecretB));
    token = Draw();
  }
  ListToken Draw() {
    clock.AdvanceSeconds(1);
    return Must(store->Call(BeginList())).token;
  }
  Result<RevokeMissingReport> Send(std::uint64_t before, bool more,
                                   std::vector<CredentialName> secrets = {}, bool dry_run = false) {
    return store->Call(RevokeMissing{.existing = {.secrets = std::move(secrets)},
                                     .token = token,
                                     .more = more,
                                     .parts_before = before,
                                     .dry_run = dry_run});
  }
  bool both_open() { return Opens('1', kSecretA) && Opens('2', kSecretB); }

  const CredentialName a{"team-a", "pull", "uid-a"};
  const CredentialName b{"team-b", "pull", "uid-b"};
  ListToken token;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(nothing_is_revoked_before_the_last_part, Parts) {
  const std::uint64_t before = commit();
  BOOST_TEST(Must(Send(0, true, {a})).gone == 0U);
  BOOST_TEST(Must(Send(1, true)).gone == 0U);
  BOOST_TEST(commit() == before);
  BOOST_TEST(both_open());
  const RevokeMissingReport report = Must(Send(2, false));
  BOOST_TEST(report.known == 1U);
  BOOST_TEST(report.gone == 1U);
  BOOST_TEST(Opens('1', kSecretA));
  BOOST_TEST(!Opens('2', kSecretB));
  // It was the last: no other follows.
  ExpectError(Send(3, false, {a}), ErrorCode::kInvalidArgument);
  ExpectError(Send(2, false, {a}), ErrorCode::kInvalidArgument);
}

BOOST_FIXTURE_TEST_CASE(parts_that_do_not_follow_revoke_nothing, Parts) {
  ExpectError(Send(1, false, {a}), ErrorCode::kInvalidArgument, "nothing was revoked");
  Must(Send(0, true, {a}));
  ExpectError(Send(2, false, {b}), ErrorCode::kInvalidArgument, "part 3 ");  // the second is lost
  const ListToken first = token;
  token = Draw();
  ExpectError(Send(1, false), ErrorCode::kInvalidArgument);  // a part of another list
  token = first;
  BOOST_TEST(both_open());
  Must(Send(1, true, {b}));
  ExpectError(Send(1, true, {b}), ErrorCode::kInvalidArgument);  // sent twice
  BOOST_TEST(Must(Send(2, false)).gone == 0U);
  BOOST_TEST(both_open());
}

BOOST_FIXTURE_TEST_CASE(a_list_that_begins_anew_takes_the_place_of_an_abandoned_one, Parts) {
  Must(Send(0, true, {a}));
  Must(Send(0, true, {}, true));
  ExpectError(Send(1, false, {b}), ErrorCode::kInvalidArgument);  // as no dry run
  // Whole lists do not count among the parts of others.
  BOOST_TEST(Must(Send(0, false, {a}, true)).gone == 1U);
  BOOST_TEST(Must(Send(1, false, {b}, true)).known == 1U);
  BOOST_TEST(both_open());
  ExpectError(Send(1, false, {b}), ErrorCode::kInvalidArgument);  // that was the end of it
  // An empty one is refused as a whole.
  Must(Send(0, true));
  ExpectError(Send(1, false), ErrorCode::kInvalidArgument);
  BOOST_TEST(both_open());
}

BOOST_FIXTURE_TEST_CASE(lists_of_two_clients_do_not_mix, Parts) {
  const ListToken first = token;
  const ListToken second = Draw();
  Must(Send(0, true, {a}));
  token = second;
  Must(Send(0, true, {b}));
  token = first;
  BOOST_TEST(Must(Send(1, false, {b})).known == 2U);
  BOOST_TEST(both_open());
}

BOOST_FIXTURE_TEST_CASE(the_parts_together_have_a_bound, Parts) {
  const std::vector<CredentialName> half(kMaxTruth / 2 + 1, a);
  Must(Send(0, true, half));
  ExpectError(Send(1, true, half), ErrorCode::kLimitExceeded);
  ExpectError(Send(2, false), ErrorCode::kInvalidArgument);  // the list is given up
  BOOST_TEST(both_open());
}

// --- Closing

BOOST_FIXTURE_TEST_CASE(closing_waits_for_calls_and_refuses_later_ones, Opened) {
  Pull('1', WithSecret(kSecretA));
  const std::string image = Name('1');
  const std::string ref = Digest('1');
  const ImageCopy copy{.image = image, .image_ref = ref};
  std::promise<void> inside;
  std::promise<void> released;
  const ImagePullSecretView secret(kSecretA);
  Decision decision;
  std::thread deciding([&] {
    decision = store->MustPull(copy, [&]() -> Result<PodCredentials> {
      inside.set_value();
      released.get_future().wait();
      return PodCredentials{.secrets = {&secret, 1}};
    });
  });
  inside.get_future().wait();
  std::atomic<bool> is_closed{false};
  std::thread closing([&] {
    BOOST_TEST(store->Close().has_value());
    is_closed = true;
  });
  // Refused while it closes.
  while (store->Call(GetStatus())) std::this_thread::yield();
  BOOST_TEST(!is_closed);
  released.set_value();
  deciding.join();
  closing.join();
  BOOST_TEST(decision.credentials_read);
  BOOST_TEST(!decision.pull);

  ExpectError(store->Call(GetStatus()), ErrorCode::kClosed, "nothing was changed");
  ExpectError(store->CallJson("GetStatus", "{}"), ErrorCode::kClosed);
  ExpectError(store->CallJson("Nonsense", "["), ErrorCode::kClosed);
  ExpectError(store->BeginPull(copy), ErrorCode::kClosed);
  ExpectError(store->EndPull(copy, {}, PullOutcome::kPulled), ErrorCode::kClosed);
  ExpectError(store->ClaimUserNamespace({.pod_uid = "p"}), ErrorCode::kClosed);
  ExpectError(store->Serve(), ErrorCode::kClosed);
  Expect(store->MustPull(copy, PodCredentials{.secrets = {&secret, 1}}), true, CheckResult::kError,
         Reason::kStoreUnavailable);
  ExpectError(store->Call(MustPull{.image = image, .image_ref = ref}), ErrorCode::kClosed);
  Must(store->Close());
}

// --- Decisions

BOOST_FIXTURE_TEST_CASE(each_way_to_give_credentials_decides_alike, Opened) {
  Pull('1', WithSecret(kSecretA));
  const std::string image = Name('1');
  const std::string ref = Digest('1');
  const ImageCopy copy{.image = image, .image_ref = ref};
  for (const ImagePullSecret& secret : {kSecretA, kSecretB}) {
    const ImagePullSecretView view(secret);
    const PodCredentials credentials{.secrets = {&view, 1}};
    const bool pull = secret == kSecretB;
    const Reason reason = pull ? Reason::kNoCredentialMatches : Reason::kSecretHashMatches;
    const Decision at_once = store->MustPull(copy, credentials);
    BOOST_TEST(at_once.pull == pull);
    BOOST_TEST(at_once.reason == reason);
    int fetched = 0;
    const FetchCredentials fetch = [&]() -> Result<PodCredentials> {
      ++fetched;
      return credentials;
    };
    const Decision late = store->MustPull(copy, fetch);
    BOOST_TEST(late.pull == pull);
    BOOST_TEST(late.reason == reason);
    BOOST_TEST(fetched == 1);
    // Of an absent image nobody asks.
    BOOST_TEST(store->MustPull({.image = image}, fetch).pull);
    BOOST_TEST(fetched == 1);
    DeferredCredentials deferred;
    BOOST_TEST(store->MustPull(copy, deferred).reason == Reason::kCredentialsNeeded);
    deferred.Provide(credentials);
    const Decision again = store->MustPull(copy, deferred);
    BOOST_TEST(again.pull == pull);
    BOOST_TEST(again.reason == reason);
    const PullDecision told =
        Must(store->Call(MustPull{.image = image, .image_ref = ref, .secrets = {secret}}));
    BOOST_TEST(told.pull == pull);
    BOOST_TEST(told.reason == ReasonName(reason));
    BOOST_TEST(told.result == CheckResultName(at_once.result));
    BOOST_TEST(told.why == ReasonText(reason));
  }
  BOOST_TEST(
      store
          ->MustPull(
              copy,
              [] {
                return Result<PodCredentials>(Error{ErrorCode::kCredentialsUnavailable, "none"});
              })
          .reason == Reason::kCredentialsUnavailable);
  BOOST_TEST(
      store->MustPull(copy, []() -> Result<PodCredentials> { throw std::bad_alloc(); }).pull);
  BOOST_TEST(store->MustPull(copy, FetchCredentials()).pull);
}

BOOST_FIXTURE_TEST_CASE(explaining_counts_and_writes_nothing, Opened) {
  Pull('1', WithSecret(kSecretA));
  // Its hash matches, and so it would be written back.
  const ImagePullSecret other = MakeSecret("team-c", "other", "uid-c", "hash-a");
  Explain call{.image = Name('1'), .image_ref = Digest('1'), .secrets = {{other}}};
  const auto secrets = [&] {
    const auto images = Must(store->Call(ListImages{.image_ref = Digest('1')}));
    return images.records.at(0).credential_mapping.at("r.example/1").kubernetes_secrets.size();
  };
  const std::uint64_t before = commit();
  const std::string counted = metrics();
  const auto answer = Must(store->Call(call));
  BOOST_TEST_REQUIRE(answer.decision.has_value());
  BOOST_TEST(!answer.decision->pull);
  BOOST_TEST(answer.decision->reason == "secretHashMatches");
  Must(store->Call(Flush()));
  BOOST_TEST(commit() == before);
  BOOST_TEST(metrics() == counted);
  BOOST_TEST(secrets() == 1U);
  call.secrets = {{kSecretB}};
  BOOST_TEST(Must(store->Call(call)).decision->pull);
  call.secrets.reset();
  BOOST_TEST(!Must(store->Call(call)).decision.has_value());
  call.secrets.emplace();
  BOOST_TEST(Must(store->Call(call)).decision->pull);
  call.secrets.reset();
  call.service_account = {"u", "n", "s"};
  BOOST_TEST(Must(store->Call(call)).decision->pull);
  BOOST_TEST(metrics() == counted);
  // A decision does both.
  BOOST_TEST(Opens('1', other));
  Must(store->Call(Flush()));
  BOOST_TEST(commit() > before);
  BOOST_TEST(metrics() != counted);
  BOOST_TEST(secrets() == 2U);
}

// --- Without a store, and streams

namespace {

// Both ways of a call say the same.
template <typename Owner, typename C>
void CheckBothWays(Owner& owner, const C& call) {
  const std::string name(internal::TypeName<C>());
  BOOST_TEST_CONTEXT(name) {
    const auto typed = owner.Call(call);
    const auto text = owner.CallJson(name, ToJson(call));
    BOOST_TEST_REQUIRE(typed.has_value() == text.has_value());
    if (!typed) {
      BOOST_TEST(typed.error().ToString() == text.error().ToString());
      return;
    }
    BOOST_TEST(ToJson(*typed) == *text);
    typename C::Answer read{};
    BOOST_TEST(FromJson(*text, read, internal::Strangers::kRefuse) == "");
    BOOST_TEST(ToJson(read) == *text);
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(streams_take_only_their_calls, OpenedStreams) {
  const PrepareStream prepare{
      {.kind = StreamKind::kExec, .container_id = "c", .command = {"sh"}, .std_out = true}};
  const std::string prepared = Must(store->CallJson("PrepareStream", ToJson(prepare)));
  const std::string token = Must(store->Call(prepare)).token;
  BOOST_TEST(token.size() == 32U);
  PrepareStream::Answer other;
  BOOST_TEST(FromJson(prepared, other) == "");
  CheckBothWays(*store, ListStreams());
  BOOST_TEST(Must(store->Call(ListStreams())).streams.size() == 2U);
  CheckBothWays(*store, GetStatus());
  BOOST_TEST(Must(store->Call(GetStatus())).streams.value().open == 2U);
  CheckBothWays(*store, GetMetrics());
  CheckBothWays(*store, Verify());
  CheckBothWays(*store, ConsumeStream{.token = std::string(32, '0')});
  CheckBothWays(*store, PrepareStream());
  BOOST_TEST(ToJson(Must(store->Call(ConsumeStream{.token = token}))) == ToJson(prepare.request));
  BOOST_TEST(Must(store->CallJson("ConsumeStream", ToJson(ConsumeStream{.token = other.token}))) ==
             ToJson(prepare.request));
  CheckBothWays(*store, ConsumeStream{.token = token});  // used up
#define WAYBILL_REFUSED(C)                                                \
  if (const std::string name = #C;                                        \
      name != "GetStatus" && name != "GetMetrics" && name != "Verify") {  \
    ExpectError(store->CallJson(name, "{}"), ErrorCode::kInvalidArgument, \
                "a store of streams has no call");                        \
  }
  WAYBILL_READING_CALLS(WAYBILL_REFUSED)
  WAYBILL_CHANGING_CALLS(WAYBILL_REFUSED)
  WAYBILL_UNSERVED_CALLS(WAYBILL_REFUSED)
  WAYBILL_LIBRARY_CALLS(WAYBILL_REFUSED)
#undef WAYBILL_REFUSED
  Must(store->Close());
  ExpectError(store->Call(ListStreams()), ErrorCode::kClosed);
  ExpectError(store->CallJson("ListStreams", "{}"), ErrorCode::kClosed);
}

// --- Options as JSON

BOOST_AUTO_TEST_CASE(options_are_read_strictly) {
  internal::ManualClock clock;
  const auto read = [&](std::string_view json) {
    return internal::OpenOptionsOf("/store", "none", json, clock);
  };
  for (const auto& [json, place] :
       {std::pair(R"({"setings":{}})", "options: setings: this version does not know it"),
        {R"({"settings":{"mode":"closed"}})", "options: settings.mode: it has no such value"},
        {R"({"settings":{"policy":{"allowlist":"*"}}})", "options: settings.policy.allowlist: "},
        {R"({"directory":"/other"})", "options: directory: "},
        {R"({"create":0})", "options: create: expected true or false"},
        {R"({"images":{}})", "options: images: "},
        {"[]", "options: "}}) {
    ExpectError(read(json), ErrorCode::kInvalidArgument, place);
  }
  const OpenOptions none = Must(read(""));
  BOOST_TEST(none.create);
  BOOST_TEST(!clock.used());
  const OpenOptions options = Must(
      read(R"({"kubeletDirectory":"/k","images":[{"id":"i"}],"runtimes":[{"name":"r"}],)"
           R"("settings":{"mode":"kubelet","maxAgeSeconds":7,"policy":{"registryOnly":["*"]}},)"
           R"("preloaded":[],"firstStartCloses":true,"create":false,"migrate":false,)"
           R"("skipUnreadable":true,"continuesPulls":true,"allowUntestedLmdb":true,)"
           R"("manualClock":true})"));
  BOOST_TEST((options.directory == "/store" && options.loss_marker == "none"));
  BOOST_TEST(options.kubelet_directory == "/k");
  BOOST_TEST((options.images.value().size() == 1U && options.runtimes.value().size() == 1U));
  BOOST_TEST((options.settings.mode == Mode::kKubelet && options.settings.max_age_seconds == 7U));
  BOOST_TEST((options.preloaded && options.preloaded->empty() && options.first_start_closes));
  BOOST_TEST((!options.create && !options.migrate && options.skip_unreadable));
  BOOST_TEST((options.continues_pulls && options.allow_untested_lmdb));
  BOOST_TEST(clock.used());
  clock.Set(-1, 5);
  BOOST_TEST((options.clocks.wall() == Timestamp{-1, 999'999'999}));
  BOOST_TEST(options.clocks.boot().nanoseconds == 5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

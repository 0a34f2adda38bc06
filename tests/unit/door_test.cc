// What Store, Library and Streams add to what is below them: calls by name, checked parameters, and
// changes that are refused as a whole. serve_test.cc compares each call of a store in all its ways.

#include "store/door.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "store/open_options.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(one_door)

namespace {

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

// One that is named twice leaves another out. That each kind of value crosses: described_test.cc.
void CheckMembers(const Type& type) {
  for (const Type::Member& a : type.members) {
    const auto same = std::count_if(type.members.begin(), type.members.end(), [&](const auto& b) {
      return a.offset < b.offset + b.type->size && b.offset < a.offset + a.type->size;
    });
    BOOST_TEST(same == 1, type.name << "." << a.name);
    const Type* inner = a.type;
    while (inner->inner != nullptr) inner = inner->inner;
    CheckMembers(*inner);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_member_is_described_once) {
#define WAYBILL_CHECK(C)                        \
  CheckMembers(internal::TypeOf<waybill::C>()); \
  CheckMembers(internal::TypeOf<waybill::C::Answer>());
  WAYBILL_READING_CALLS(WAYBILL_CHECK)
  WAYBILL_CHANGING_CALLS(WAYBILL_CHECK)
  WAYBILL_UNSERVED_CALLS(WAYBILL_CHECK)
  WAYBILL_LIBRARY_CALLS(WAYBILL_CHECK)
  WAYBILL_STREAM_CALLS(WAYBILL_CHECK)
#undef WAYBILL_CHECK
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
      {"BeginPull", nested(17), "parameters: image: "},
      {"DropPulls", R"({"image":"r.example/1:v1","dryRunn":true})",
       "parameters: dryRunn: this version does not know"},
      {"AllowImage", R"({"image":{"id":"x","repoTags":["a",7]},"reason":"why"})",
       "parameters: image.repoTags[1]: expected a string"},
      {"Revoke", R"({"kind":"secrets"})", "parameters: kind: it has no such value"},
      {"PruneBefore", R"({"images":[],"before":"yesterday"})",
       "parameters: before: it has another form"},
      {"PruneBefore", R"({"images":[],"token":"7"})", "parameters: token: it has another form"},
      {"PruneBefore", R"({"images":[],"token":")" + token + R"(0"})", "parameters: token: "},
      {"ClaimUserNamespace", R"({"podUid":"p","hostUsers":false,"length":4294967296})",
       "parameters: length: the number is out of range"},
      {"EndPull", R"({"image":"r.example/1:v1","outcome":"pulled","credentials":{"secrets":[{}]}})",
       "parameters: credentials.secrets[0].namespace: it is missing"}};
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

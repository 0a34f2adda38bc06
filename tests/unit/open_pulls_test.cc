// Pulls: while they run, and who checked their credentials.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "store/base/words.h"
#include "store/images/pull_error.h"
#include "store/images/pull_row.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/values.h"

namespace waybill::testing {

// Open pulls where histories/evidence.jsonl does not reach: IDs, the table's bound, lost stores,
// tokens that somebody made up.
BOOST_AUTO_TEST_SUITE(open_pulls)

namespace {

constexpr std::int64_t kWindow = 7200;
constexpr std::string_view kOther = "registry.example.com/team/other:v1";

std::vector<UnresolvedPull> Pulls(ScratchStore& store) { return Must(store->ListOpenPulls()); }

PullId Begin(ScratchStore& store, std::string_view image = kImage) {
  return Must(store->RecordPullIntent({.image = image}));
}
void Fail(ScratchStore& store, PullOutcome failure, PullId pull = {},
          std::string_view image = kImage) {
  Must(store->RecordImagePullFailed({.image = image}, failure, pull));
}
void Succeed(ScratchStore& store, PullId pull = {}, std::string_view image = kImage) {
  Must(store->RecordImagePulled({.image = image, .image_ref = kRef}, WithSecret(kSecretA),
                                {.pull = pull}));
}

// A complete list with the images that have records, and what it settled.
std::uint64_t Settle(NodeStore& store) {
  ImageList list{.token = Must(store.BeginList()), .complete = true};
  for (const ImagePulledRecord& record : Must(store.ListRecords())) {
    list.images.push_back({.id = record.image_ref});
  }
  return Must(store.ObserveImages(list, {.allow_empty = true})).pulls_settled;
}

}  // namespace

// --- What is stored

// A state of a later version, or damage: what the pull may still bring is not known.
BOOST_AUTO_TEST_CASE(a_state_without_a_word_is_damage) {
  UnresolvedPull pull{.id = {1}, .image = "app:v1", .state = PullState::kUnknown};
  pull.ended = Timestamp{1, 0};
  const auto decoded = [&] {
    return internal::DecodeUnresolvedPull(internal::EncodeUnresolvedPull(pull)).has_value();
  };
  BOOST_TEST(decoded());
  for (const int state : {0, 5, 255}) {
    pull.state = static_cast<PullState>(state);
    BOOST_TEST(!decoded(), state);
  }
}

// --- IDs

BOOST_FIXTURE_TEST_CASE(each_pull_has_an_id_and_none_is_used_twice, ClosedStore) {
  std::set<PullId> used;
  PullId last;
  for (int i = 0; i < 40; ++i) {
    const PullId id = Begin(store);
    BOOST_TEST((id > last));
    BOOST_TEST(used.insert(id).second);
    last = id;
    switch (i % 5) {
      case 0:
        Succeed(store, id);
        break;
      case 1:
        Fail(store, PullOutcome::kNothing, id);
        break;
      case 2:
        Fail(store, PullOutcome::kUnknown, id);
        break;
      case 3:
        store.Restart();
        break;
      default:
        break;
    }
  }
}

BOOST_FIXTURE_TEST_CASE(ids_of_a_lost_store_are_not_used_again, ClosedStore) {
  const PullId before = Begin(store);
  store.Stop();
  std::filesystem::remove_all(store.directory());
  store.Start();
  BOOST_TEST((Begin(store) > before));
}

// An older copy put back knows the pulls before it only.
BOOST_FIXTURE_TEST_CASE(ids_of_a_store_that_is_newer_than_this_copy_are_not_used_again,
                        ClosedStore) {
  Begin(store);
  store.Stop();
  const std::string older = ReadFile(store.directory() / "data.mdb");
  store.Start();
  PullId before;
  for (int i = 0; i < 5; ++i) before = Begin(store);
  store.Stop();
  WriteFile(store.directory() / "data.mdb", older);
  std::filesystem::remove(store.directory() / "lock.mdb");
  store.Start();
  BOOST_TEST(store->recovery_report().distrustful);
  BOOST_TEST((Begin(store) > before));
}

BOOST_AUTO_TEST_CASE(an_id_that_never_was_or_is_of_another_string_is_refused) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    const PullId own = Begin(store);
    const PullId other = Begin(store, kOther);
    const std::vector<UnresolvedPull> before = Pulls(store);
    const PullId last{~std::uint64_t{0}};
    const PullId next{other.value + (std::uint64_t{1} << 20U)};
    const PullId after{other.value + 1};
    for (const PullId wrong : {other, PullId{1}, PullId{4242}, after, next, last}) {
      const ImageCopy copy = {.image = kImage, .image_ref = kRef};
      const auto pulled = store->RecordImagePulled(copy, NodeWide(), {.pull = wrong});
      const auto failed = store->RecordImagePullFailed(copy, PullOutcome::kFailed, wrong);
      ExpectError(pulled, ErrorCode::kNotFound);
      ExpectError(failed, ErrorCode::kNotFound);
      BOOST_TEST(pulled.error().message.find("nothing was changed") != std::string::npos);
    }
    BOOST_TEST(Must(store->ListRecords()).empty());
    BOOST_TEST(Pulls(store).size() == before.size());
    // Nor was it counted as an end.
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, NodeWide(), {.pull = own}));
    BOOST_TEST(Pulls(store).size() == before.size() - 1);
  }
}

// --- How they are settled

// A caller that mixes tokens up can't make a pull older than it is.
BOOST_FIXTURE_TEST_CASE(a_token_that_was_drawn_later_than_now, ClosedStore) {
  Begin(store);
  Fail(store, PullOutcome::kUnknown);
  ListToken token = Must(store->BeginList());
  token.drawn.nanoseconds += std::int64_t{2} * kWindow * 1'000'000'000;
  ImageList list{.token = token, .complete = true};
  static_cast<void>(store->ObserveImages(list, {.allow_empty = true}));
  list.token->drawn.nanoseconds = std::numeric_limits<std::int64_t>::min();
  static_cast<void>(store->ObserveImages(list, {.allow_empty = true}));
  BOOST_TEST(Pulls(store).size() == 1U);
}

// A script draws a token, the store is lost and made anew: the number would pass for one of its
// own.
BOOST_AUTO_TEST_CASE(a_token_of_another_store) {
  ScratchStore lost(Mode::kStrict);
  ScratchStore store(Mode::kStrict);
  Begin(store);
  Fail(store, PullOutcome::kUnknown);
  const ListToken foreign = Must(lost->BeginList());
  const ChangeOptions empty{.allow_empty = true};
  const auto refused = [](const auto& result) {
    return !result && result.error().code == ErrorCode::kInvalidArgument;
  };
  BOOST_TEST(refused(store->ObserveImages({.token = foreign, .complete = true}, empty)));
  BOOST_TEST(refused(store->Prune({}, foreign, empty)));
  BOOST_TEST(refused(store->CleanUpUserNamespaces({}, {}, foreign, empty)));
  BOOST_TEST(Pulls(store).size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(options_and_reasons_have_bounds, ClosedStore) {
  const PullId pull = Begin(store);
  Fail(store, PullOutcome::kUnknown);
  ExpectError(store->DropOpenPull(pull, std::string(kMaxReasonBytes + 1, 'r')),
              ErrorCode::kInvalidArgument);
  Must(store->DropOpenPull(pull, std::string(kMaxReasonBytes, 'r')));
  store.Stop();
  NodeStoreOptions options = store.Options({});
  for (const std::chrono::seconds wrong :
       {std::chrono::seconds(-1), std::chrono::seconds(59), std::chrono::seconds::min(),
        std::chrono::seconds::max(), kMaxAge + std::chrono::seconds(1)}) {
    options.max_age = wrong;
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  }
  options.max_age.reset();
  // Else the next opening would forget what was revoked.
  for (const std::chrono::seconds wrong :
       {std::chrono::seconds(-1), std::chrono::seconds(0), std::chrono::seconds(86399)}) {
    options.revocations_kept = wrong;
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  }
}

// --- Too many

// A tenant asks for ever new images, and deletes his pods; some are not in the registry at all.
void OpenTooMany(std::size_t one_in_brings_nothing) {
  const MemoryDir scratch;
  FakeClock clock;
  NodeStoreOptions options = OptionsIn(scratch.path());
  options.clock = clock.AsClock();
  options.boot_clock = clock.AsBootClock();
  const auto image = [](std::size_t i) {
    return "registry.example/app" + std::to_string(i) + ":v1";
  };
  const auto store = Must(NodeStore::Open(options));
  std::size_t most = 0;
  const std::size_t asked =
      (kMaxEndedPulls + 200) * one_in_brings_nothing / (one_in_brings_nothing - 1);
  for (std::size_t i = 0; i < asked; ++i) {
    const PullId pull = Must(store->RecordPullIntent({.image = image(i)}));
    const bool nothing = i % one_in_brings_nothing == one_in_brings_nothing - 1;
    Must(store->RecordImagePullFailed(
        {.image = image(i)}, nothing ? PullOutcome::kNothing : PullOutcome::kUnknown, pull));
    clock.AdvanceSeconds(1);
    if (i % 100 == 0) most = std::max(most, Must(store->ListOpenPulls()).size());
  }
  const std::vector<UnresolvedPull> pulls = Must(store->ListOpenPulls());
  BOOST_TEST(std::max(most, pulls.size()) <= kMaxEndedPulls + 1);
  BOOST_TEST(std::count_if(pulls.begin(), pulls.end(),
                           [](const UnresolvedPull& pull) { return pull.anything; }) == 1);
  const UnresolvedPull& anything = *std::find_if(
      pulls.begin(), pulls.end(), [](const UnresolvedPull& pull) { return pull.anything; });
  BOOST_TEST(anything.several);
  BOOST_TEST((anything.state == PullState::kUnknown));
  std::set<std::string> named;
  for (const UnresolvedPull& pull : pulls) named.insert(pull.image);
  BOOST_TEST(!named.contains(image(0)));
  BOOST_TEST(named.contains(image(kMaxEndedPulls + 198)));
  // What the oldest brings is closed, by whatever name it comes. It waits for the last of them.
  const auto closes = [&](const std::string& name) {
    ImageList list{.images = {{.id = "sha256:late", .repo_tags = {name}}}};
    list.token = Must(store->BeginList());
    return Must(store->ObserveImages(list, {.dry_run = true})).closed == 1;
  };
  BOOST_TEST(closes(image(0)));
  BOOST_TEST(closes("registry.example/never-asked-for:v1"));
  const std::int64_t ended_s = anything.ended_at.nanoseconds / 1'000'000'000;
  clock.AdvanceSeconds(kWindow - 1 - (clock.Boot().nanoseconds / 1'000'000'000 - ended_s));
  Settle(*store);
  BOOST_TEST(closes(image(0)));
  clock.AdvanceSeconds(1);
  Settle(*store);
  BOOST_TEST(!closes(image(0)));
  clock.AdvanceSeconds(kWindow);
  Settle(*store);
  BOOST_TEST(Must(store->ListOpenPulls()).empty());
}

BOOST_AUTO_TEST_CASE(the_oldest_of_too_many_become_one_of_anything) {
  for (const std::size_t one_in_brings_nothing : {kMaxEndedPulls * 2, std::size_t{16}}) {
    BOOST_TEST_CONTEXT(one_in_brings_nothing) { OpenTooMany(one_in_brings_nothing); }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Who checked a credential, and which of that the policy counts (store/base/policy.h), where
// histories/checkers.jsonl does not reach: rules and terms that are refused, what an explanation
// says. Random histories: tests/model.
BOOST_AUTO_TEST_SUITE(checkers)

namespace {

constexpr auto kOthers = {VerifiedBy::kUnknown, VerifiedBy::kMirror, VerifiedBy::kGuest};

Result<void> Pull(ScratchStore& store, const ProofTerms& terms) {
  return store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA),
                                  {.terms = terms});
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_most_telling_rule_counts) {
  const auto policy =
      Must(VerificationPolicy().WithProofs({{"", Proofs::kRegistry},
                                            {"registry.example/*", Proofs::kAny},
                                            {"registry.example/a/*", Proofs::kRegistry},
                                            {"registry.example/a/b", Proofs::kAny}}));
  const auto counts = [&](std::string_view name) {
    return policy.ProofCounts(name, VerifiedBy::kMirror);
  };
  BOOST_TEST(!counts("nginx"));
  BOOST_TEST(!counts("registry.example"));
  BOOST_TEST(counts("registry.example/x"));
  BOOST_TEST(!counts("registry.example/a/x"));
  BOOST_TEST(counts("registry.example/a/b"));
  BOOST_TEST(!counts("registry.example/a/b/c"));
  for (const auto checker : kOthers) {
    BOOST_TEST(!policy.ProofCounts("nginx", checker));
    BOOST_TEST(VerificationPolicy().ProofCounts("nginx", checker));
  }
  BOOST_TEST(policy.ProofCounts("nginx", VerifiedBy::kRegistry));
  BOOST_TEST(!Must(policy.WithProofs({})).chooses_proofs());
}

BOOST_AUTO_TEST_CASE(rules_that_are_refused) {
  const auto with = [](const std::vector<ProofRule>& rules) {
    return VerificationPolicy().WithProofs(rules);
  };
  ExpectError(with({{"a:v1", Proofs::kAny}}), ErrorCode::kInvalidArgument, "a:v1");
  ExpectError(with({{"a/*", Proofs::kAny}, {"a/*", Proofs::kAny}}), ErrorCode::kInvalidArgument,
              "two rules");
  ExpectError(with({{"", Proofs::kAny}, {"", Proofs::kRegistry}}), ErrorCode::kInvalidArgument,
              "two rules");
  ExpectError(with(std::vector<ProofRule>(kMaxAllowlistPatterns + 1)), ErrorCode::kLimitExceeded,
              "above");
}

BOOST_AUTO_TEST_CASE(an_explanation_says_who_checked) {
  UnderBothRules([](Mode rules) {
    for (const auto checker : kOthers) {
      ScratchStore store(rules, Must(VerificationPolicy().WithProofs({{"", Proofs::kRegistry}})));
      Must(Pull(store, {.checker = checker}));
      const Explanation why = Must(store->Explain({.image = kImage, .image_ref = kRef}));
      BOOST_TEST_REQUIRE(why.credentials.size() == 1U);
      BOOST_TEST((why.credentials[0].standing == CredentialStanding::kNotByRegistry));
      BOOST_TEST((why.credentials[0].proof.checker == checker));
    }
  });
}

// What a mirror answered afterwards opens it, though the registry's proof is still in the record.
BOOST_AUTO_TEST_CASE(a_registrys_proof_that_was_forgotten_stands_in_no_ones_way) {
  UnderBothRules([](Mode rules) {
    ScratchStore store(rules);
    store.ChangeAtOnce(1);
    const auto pull = [&](std::string_view ref, VerifiedBy checker) {
      const PullId id = Must(store->RecordPullIntent({.image = kImage}));
      Must(store->RecordImagePulled({.image = kImage, .image_ref = ref}, WithSecret(kSecretA),
                                    {.pull = id, .terms = {.checker = checker}}));
    };
    for (const char digit : std::string_view("345678")) {
      pull(Digest(digit), VerifiedBy::kRegistry);
    }
    static_cast<void>(Must(store->Forget(
        {.kind = RevocationKind::kSecret, .who = {.namespace_name = "team-a", .name = "pull"}})));
    for (const char digit : std::string_view("345678")) pull(Digest(digit), VerifiedBy::kMirror);
    for (const char digit : std::string_view("345678")) {
      BOOST_TEST(!store.Check(kImage, Digest(digit), Pod(kSecretA)).pull);
    }
  });
}

BOOST_AUTO_TEST_CASE(terms_that_are_refused) {
  ScratchStore store(Mode::kStrict);
  ExpectError(Pull(store, {.checker = static_cast<VerifiedBy>(5)}), ErrorCode::kInvalidArgument,
              "checker");
  for (const std::int64_t second :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{253'402'300'800}}) {
    ExpectError(Pull(store, {.good_until = Timestamp{second, 0}}), ErrorCode::kInvalidArgument,
                "is good");
  }
  BOOST_TEST(Must(store->ListRecords()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// The class of an error that a pull ended with, by what runtimes, registries and kubelets say.
BOOST_AUTO_TEST_SUITE(pull_error)

namespace {

using Class = PullErrorClass;

// As containerd 1.6 to 2.1, CRI-O 1.28 to 1.34 and kubelets 1.33 to 1.36 word them.
const std::
    pair<const char*, Class>
        kMessages
            [] =
                {
                    // containerd
                    {R"(rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/private:1": failed to resolve reference "docker.io/library/private:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed)",
                     Class::kAuth},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.example/token?scope=repository%3Ax%3Apull: 401 Unauthorized)",
                     Class::kAuth},
                    {R"(rpc error: code = Unknown desc = failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 403 Forbidden)",
                     Class::kAuth},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized)",
                     Class::kAuth},
                    {R"(rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/busybox:nope": failed to resolve reference "docker.io/library/busybox:nope": docker.io/library/busybox:nope: not found)",
                     Class::kNotFound},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 503 Service Unavailable)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": dial tcp: lookup registry.example on 10.96.0.10:53: no such host)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": dial tcp 192.0.2.1:443: connect: connection refused)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": failed to authorize: failed to fetch anonymous token: Get "https://auth.docker.io/token?service=registry.docker.io": dial tcp 192.0.2.1:443: i/o timeout)",
                     Class::kUnavailable},
                    {R"(failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://registry.example/v2/x/blobs/sha256:00": net/http: TLS handshake timeout)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "docker.io/library/x:1": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/x/manifests/sha256:00: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": EOF)",
                     Class::kUnavailable},
                    {R"(rpc error: code = DeadlineExceeded desc = context deadline exceeded)",
                     Class::kUnavailable},
                    {R"(rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused")",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority)",
                     Class::kOther},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to extract layer sha256:00: write /var/lib/containerd/x: no space left on device)",
                     Class::kOther},
                    // CRI-O
                    {R"(rpc error: code = Unknown desc = unable to pull image or OCI artifact: pull image err: initializing source docker://docker.io/library/private:1: reading manifest 1 in docker.io/library/private: requested access to the resource is denied)",
                     Class::kAuth},
                    {R"(initializing source docker://registry.example/x:1: unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password)",
                     Class::kAuth},
                    {R"(initializing source docker://quay.io/team/x:1: reading manifest 1 in quay.io/team/x: unauthorized: access to the requested resource is not authorized)",
                     Class::kAuth},
                    {R"(initializing source docker://ghcr.io/team/x:1: reading manifest 1 in ghcr.io/team/x: denied: denied)",
                     Class::kAuth},
                    {R"(initializing source docker://registry.example/x:9: reading manifest 9 in registry.example/x: manifest unknown)",
                     Class::kNotFound},
                    {R"(initializing source docker://registry.example/x:9: reading manifest 9 in registry.example/x: name unknown: repository name not known to registry)",
                     Class::kNotFound},
                    {R"(initializing source docker://registry.example/x:1: pinging container registry registry.example: Get "https://registry.example/v2/": dial tcp 192.0.2.1:443: connect: no route to host)",
                     Class::kUnavailable},
                    {R"(initializing source docker://registry.example/x:1: pinging container registry registry.example: received unexpected HTTP status: 503 Service Unavailable)",
                     Class::kUnavailable},
                    {R"(initializing source docker://registry.example/x:1: reading manifest 1 in registry.example/x: StatusCode: 404, "<html>")",
                     Class::kNotFound},
                    // kubelets
                    {"ErrImagePull: pull QPS exceeded", Class::kOther},
                    {"RegistryUnavailable: image pull failed for registry.example/x:1 because the "
                     "registry is "
                     "unavailable.",
                     Class::kUnavailable},
                    {"SignatureValidationFailed: image pull failed because the signature "
                     "validation failed",
                     Class::kOther},
                    // Names are no words of an error.
                    {R"(failed to pull image "registry.example/denied:eof": no space left on device)",
                     Class::kOther},
                    {"reading registry.example/eof: x509: certificate has expired", Class::kOther},
                    {"401", Class::kOther},
                    {"", Class::kUnknown},
};

}  // namespace

BOOST_AUTO_TEST_CASE(messages_have_their_class) {
  for (const auto& [message, expected] : kMessages) {
    BOOST_TEST(WordOf(ClassifyPullError(message)) == WordOf(expected), message);
  }
}

BOOST_AUTO_TEST_CASE(a_page_of_a_registry_is_read_in_part) {
  BOOST_TEST((ClassifyPullError(std::string(1 << 20, 'x') + " 401 Unauthorized") == Class::kOther));
}

BOOST_AUTO_TEST_CASE(classes_have_names) {
  for (const Class one :
       {Class::kUnknown, Class::kAuth, Class::kNotFound, Class::kUnavailable, Class::kOther}) {
    BOOST_TEST((*FromWord<PullErrorClass>(WordOf(one), "class of errors") == one));
  }
  BOOST_TEST(!FromWord<PullErrorClass>("Auth", "class of errors").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

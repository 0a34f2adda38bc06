// `waybill reconcile --published`: a list of UIDs that a cluster published. The list is what
// somebody else wrote: whatever is not exactly such a list forgets nothing.

#include "bindings/cli/published_list.h"

#include <signal.h>
#include <time.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "store/base/hex.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/base/timestamp.h"
#include "store/disk/uuid.h"
#include "tests/support/cli_store.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "waybill/waybill.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(published_list)

namespace {

using cli::DecodePublishedList;
using Strings = std::vector<std::string>;

std::string RawOf(unsigned number) {
  std::string raw(16, '\0');
  raw[2] = static_cast<char>(number >> 8U);
  raw[3] = static_cast<char>(number);
  raw[6] = 0x40;
  raw[8] = static_cast<char>(0x80);
  raw[15] = static_cast<char>(number % 16);
  return raw;
}
std::string UidOf(unsigned number) {
  const std::string raw = RawOf(number);
  return internal::EncodeUuid(std::span<const std::uint8_t, 16>(
      reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()));
}
std::string BigEndian(std::uint64_t number, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(number >> (8 * static_cast<unsigned>(bytes)));
  return text;
}

struct Content {
  std::int64_t as_of = 0;
  std::vector<unsigned> secrets = {};
  std::vector<unsigned> accounts = {};
  std::uint32_t version = 1;
  std::uint32_t zero = 0;
  // By default as many as there are.
  std::optional<std::uint32_t> says_secrets = {};
  std::optional<std::uint32_t> says_accounts = {};
};

// With the right SHA-256, whatever else is wrong.
std::string Encode(const Content& content) {
  std::string head = "waybill-existing" + BigEndian(content.version, 4);
  head += BigEndian(content.says_secrets.value_or(content.secrets.size()), 4);
  head += BigEndian(content.says_accounts.value_or(content.accounts.size()), 4);
  head += BigEndian(content.zero, 4) + BigEndian(static_cast<std::uint64_t>(content.as_of), 8);
  std::string uids;
  for (const unsigned one : content.secrets) uids += RawOf(one);
  for (const unsigned one : content.accounts) uids += RawOf(one);
  const auto digest = internal::Sha256(head + uids).value();
  return head + std::string(digest.begin(), digest.end()) + uids;
}

std::int64_t Now() { return static_cast<std::int64_t>(::time(nullptr)); }

}  // namespace

BOOST_AUTO_TEST_CASE(it_reads_what_waybill_existing_writes) {
  const auto list = Must(DecodePublishedList(ReadFile(WAYBILL_FIXTURES "/published/existing")));
  BOOST_TEST(FormatTimestamp(list.as_of) == "2026-11-26T12:00:00Z");
  BOOST_TEST(list.secrets.size() == 8U);
  BOOST_TEST(list.service_accounts.size() == 4U);
  const std::string dockercfg = "00000017-0000-4000-8000-000000000001";
  const std::string account = "00000001-0000-4000-8000-000000000004";
  BOOST_TEST(list.Has(RevocationKind::kSecret, dockercfg));
  BOOST_TEST(!list.Has(RevocationKind::kServiceAccount, dockercfg));
  BOOST_TEST(list.Has(RevocationKind::kServiceAccount, account));
  BOOST_TEST(!list.Has(RevocationKind::kSecret, account));
  for (const std::string none : {"", "x", "00000017-0000-4000-8000-000000000002",
                                 "00000017-0000-4000-8000-00000000000", "u-1"}) {
    BOOST_TEST(!list.Has(RevocationKind::kSecret, none), none);
  }
}

BOOST_AUTO_TEST_CASE(what_is_cut_or_changed_anywhere_is_refused) {
  const std::string whole = ReadFile(WAYBILL_FIXTURES "/published/existing");
  BOOST_TEST(DecodePublishedList(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    BOOST_TEST(!DecodePublishedList(whole.substr(0, size)).has_value(), size << " bytes");
    BOOST_TEST(!DecodePublishedList(whole.substr(whole.size() - size)).has_value(), size);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char bit : {'\x01', '\x80'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      BOOST_TEST(!DecodePublishedList(changed).has_value(), "byte " << at);
    }
  }
  for (const std::string& more : {std::string(1, '\0'), std::string(16, '\0'), whole}) {
    BOOST_TEST(!DecodePublishedList(whole + more).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_right_digest_alone_is_not_enough) {
  const Content good{.as_of = 1'790'000'000, .secrets = {1, 2}, .accounts = {1, 3}};
  BOOST_TEST(DecodePublishedList(Encode(good)).has_value());
  Content other = good;
  other.secrets = {};
  BOOST_TEST(DecodePublishedList(Encode(other)).has_value());  // a cluster without pull Secrets
  const std::vector<std::pair<std::string, std::function<void(Content&)>>> wrong = {
      {"no service account", [](Content& c) { c.accounts = {}; }},
      {"nothing", [](Content& c) { c.accounts = c.secrets = {}; }},
      {"version 0", [](Content& c) { c.version = 0; }},
      {"version 2", [](Content& c) { c.version = 2; }},
      {"a later field", [](Content& c) { c.zero = 1; }},
      {"before 1970", [](Content& c) { c.as_of = -1; }},
      {"after 9999", [](Content& c) { c.as_of = 253'402'300'800; }},
      {"Secrets fall",
       [](Content& c) {
         c.secrets = {2, 1};
       }},
      {"a Secret twice",
       [](Content& c) {
         c.secrets = {1, 1};
       }},
      {"accounts fall",
       [](Content& c) {
         c.accounts = {3, 1};
       }},
      {"one Secret too few", [](Content& c) { c.says_secrets = 3; }},
      {"one Secret too many", [](Content& c) { c.says_secrets = 1; }},
      // 16 times it is 0 in 32 bits.
      {"very many", [](Content& c) { c.says_secrets = 0x10000000U + 2; }},
      {"most", [](Content& c) { c.says_secrets = c.says_accounts = UINT32_MAX; }},
      // The sum is right: what is a Secret passes for an account.
      {"accounts alone", [](Content& c) { c.says_secrets = 4, c.says_accounts = 0; }},
  };
  for (const auto& [what, spoil] : wrong) {
    Content content = good;
    spoil(content);
    BOOST_TEST(!DecodePublishedList(Encode(content)).has_value(), what);
  }
  BOOST_TEST(!DecodePublishedList(std::string(cli::kMaxPublishedBytes + 1, 'x')).has_value());
}

namespace {

// A store that this process owns and serves, and a directory as a ConfigMap's volume.
struct Published {
  Published() {
    BOOST_TEST_REQUIRE(files.Start().exit_code == 0);
    owner = Must(NodeStore::Open({.directory = files.store(), .witness = Witness::Remembered()}));
    Must(owner->Serve());
    std::filesystem::create_directory(volume());
  }

  std::string volume() const { return (files / "volume").string(); }
  void PublishBytes(const std::string& bytes) const {
    // As a kubelet: by a link to another directory.
    static int number = 0;
    const auto directory = files / ("volume/..data" + std::to_string(++number));
    std::filesystem::create_directory(directory);
    WriteFile(directory / "existing", bytes);
    std::filesystem::create_symlink(directory / "existing", files / "volume/new");
    std::filesystem::rename(files / "volume/new", files / "volume/existing");
  }
  void Publish(const Content& content) const { PublishBytes(Encode(content)); }

  void Record(const ImagePullCredentials& proven) {
    const ImageCopy copy{.image = "registry.example.com/x/app:v1", .image_ref = "ref"};
    const PullId pull = Must(owner->RecordPullIntent(copy));
    Must(owner->RecordImagePulled(copy, proven, {.pull = pull}));
  }
  void Prove(unsigned secret) {
    const std::string number = std::to_string(secret);
    ImagePullCredentials proven;
    proven.kubernetes_secrets = {
        MakeSecret("tenant", "pull-" + number, UidOf(secret), "hash-" + number)};
    Record(proven);
  }
  void ProveAccount(unsigned account) {
    ImagePullCredentials proven;
    proven.kubernetes_service_accounts = {
        {.uid = UidOf(account), .namespace_name = "tenant", .name = "builder"}};
    Record(proven);
  }
  // UIDs in the record.
  std::set<std::string> Proven() const {
    std::set<std::string> uids;
    for (const auto& record : Must(owner->ListRecords())) {
      for (const auto& [name, entry] : record.credential_mapping) {
        for (const auto& one : entry.kubernetes_secrets) uids.insert(one.uid);
        for (const auto& one : entry.kubernetes_service_accounts) uids.insert(one.uid);
      }
    }
    return uids;
  }
  // As if it had been drawn so many seconds ago.
  std::string Token(std::int64_t age) const {
    const ListToken token = Must(owner->BeginList());
    return std::to_string(token.commit) + '.' +
           std::to_string(token.drawn.nanoseconds - age * 1'000'000'000) + '.' +
           std::to_string(token.store) + '.' + internal::HexEncode(token.drawn.boot_id);
  }

  CommandResult Reconcile(Strings more) const {
    more.insert(more.begin(), {"--published", volume()});
    return files.Run("reconcile", more);
  }
  // Refused with these words, and nothing was written.
  void RefusedWith(const Strings& more, const std::string& words) const {
    const std::string before = ReadFile(files / "store/data.mdb");
    const CommandResult result = Reconcile(more);
    BOOST_TEST(result.exit_code == 2, result.err);
    BOOST_TEST(Contains(result.err, words), result.err);
    BOOST_TEST(Contains(result.err, "nothing was forgotten"), result.err);
    BOOST_TEST((ReadFile(files / "store/data.mdb") == before));
  }

  CliStore files;
  std::unique_ptr<NodeStore> owner;
};

// A cluster's clock that is ahead of this one by as much as it may: a token is older than its lists
// at once.
std::int64_t Ahead() {
  constexpr std::int64_t kMargin = 300;
  return Now() + kMargin;
}

Strings With(const std::string& token, Strings more = {}) {
  more.insert(more.end(), {"--token", token});
  return more;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(it_forgets_what_is_not_listed_and_was_proven_before, Published) {
  Prove(1);
  ProveAccount(11);
  Prove(2);
  ProveAccount(12);
  // The same UID as a Secret and as an account: kinds are apart.
  Prove(13);
  const std::string token = Token(3);
  Prove(3);
  Publish({.as_of = Ahead() - 1, .secrets = {1, 12}, .accounts = {11, 13}});
  const auto report = files.Json("reconcile", With(token, {"--published", volume(), "--dry-run"}));
  BOOST_TEST(report["known"] == 2);    // 1, 11
  BOOST_TEST(report["missing"] == 3);  // 2, 12, 13
  BOOST_TEST(report["newer"] == 1);    // 3
  BOOST_TEST(Proven().size() == 6U);
  const CommandResult done = Reconcile(With(token));
  BOOST_TEST(done.exit_code == 0, done.err);
  BOOST_TEST(done.err == "");
  BOOST_TEST(Proven() == (std::set<std::string>{UidOf(1), UidOf(11), UidOf(3)}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(it_forgets_all_of_a_node_whose_tenants_are_gone, Published) {
  Prove(1);
  ProveAccount(11);
  Publish({.as_of = Ahead() - 1, .secrets = {}, .accounts = {5}});
  const CommandResult done = Reconcile(With(Token(3)));
  BOOST_TEST(done.exit_code == 0, done.err);
  BOOST_TEST(Proven().empty());
}

BOOST_FIXTURE_TEST_CASE(it_writes_nothing_where_nothing_is_gone, Published) {
  Prove(1);
  ProveAccount(11);
  const std::string token = Token(3);
  Prove(2);
  Publish({.as_of = Ahead() - 1, .secrets = {1}, .accounts = {11}});
  const std::string before = ReadFile(files / "store/data.mdb");
  const CommandResult done = Reconcile(With(token));
  BOOST_TEST(done.exit_code == 0, done.err);
  BOOST_TEST((ReadFile(files / "store/data.mdb") == before));
  BOOST_TEST(Proven().size() == 3U);
}

BOOST_FIXTURE_TEST_CASE(what_does_not_fit_in_time_forgets_nothing, Published) {
  Prove(1);
  RefusedWith(With(Token(3)), "nothing was published yet");
  const Content gone{.as_of = Now() - 100, .accounts = {5}};
  Publish(gone);
  RefusedWith(With(Token(50)), "it may lack what was proven before the token");
  RefusedWith(With(Token(0)), "it may lack what was proven before the token");
  // By less than the clocks may differ.
  RefusedWith(With(Token(160)), "it may lack what was proven before the token");
  Content later = gone;
  later.as_of = Now() + 1000;
  Publish(later);
  RefusedWith(With(Token(3)), "which is yet to come here");
  Publish(gone);
  std::string other_boot = Token(200);
  other_boot.back() = other_boot.back() == '0' ? '1' : '0';
  RefusedWith(With(other_boot), "the machine booted since");
  const std::string token = Token(0);
  const std::string unknown = token.substr(0, token.rfind('.') + 1) + std::string(32, '0');
  RefusedWith(With(unknown), "the machine booted since");
  RefusedWith(With(Token(-1'000'000)), "the machine booted since");
  BOOST_TEST(Proven().size() == 1U);
  // The same in time.
  Content in_time = gone;
  in_time.as_of = Ahead() - 100;
  Publish(in_time);
  RefusedWith(With(Token(60)), "it may lack what was proven before the token");
  BOOST_TEST(Reconcile(With(Token(200))).exit_code == 0);
  BOOST_TEST(Proven().empty());
}

BOOST_FIXTURE_TEST_CASE(what_is_no_such_list_forgets_nothing, Published) {
  Prove(1);
  const std::string whole = Encode({.as_of = Ahead() - 1, .secrets = {2}, .accounts = {5}});
  std::string changed = whole;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  const std::string token = Token(3);
  for (const auto& [bytes, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "it breaks off in its head"},
           {whole.substr(0, whole.size() - 1), "its head says 2 UIDs"},
           {changed, "its SHA-256 is not that of what it holds"},
           {Encode({.as_of = Ahead() - 1, .secrets = {2}}), "it has no service account"},
           {Encode({.as_of = Ahead() - 1, .accounts = {5}, .version = 2}), "it is of version 2"},
           {std::string(std::size_t{2} << 20U, 'x'), "has more than 1048576 bytes"}}) {
    PublishBytes(bytes);
    RefusedWith(With(token), words);
  }
  PublishBytes(whole);
  std::filesystem::permissions(files / "volume/existing", std::filesystem::perms(0666));
  RefusedWith(With(token), "can be written by others");
  BOOST_TEST(Proven().size() == 1U);
}

// Only a token that is older still goes with it: the command runs in a time namespace, whose
// machine booted five days before this one.
BOOST_FIXTURE_TEST_CASE(an_old_list_counts_and_is_said_to_be_old, Published) {
  const auto there = [](const Strings& command) {
    Strings words = {"/usr/bin/unshare", "--time", "--boottime", "432000"};
    words.insert(words.end(), command.begin(), command.end());
    return RunningCommand(words).Wait();
  };
  if (there({"/bin/true"}).exit_code != 0) {
    BOOST_TEST_MESSAGE("left out: may not make time namespaces");
    return;
  }
  Prove(1);
  Publish({.as_of = Now() - 4 * 24 * 3600, .accounts = {5}});
  const CommandResult done = there({WAYBILL_CLI, "reconcile", "--store", files.store(),
                                    "--published", volume(), "--token", Token(0)});
  BOOST_TEST(done.exit_code == 0, done.err);
  BOOST_TEST(Contains(done.err, "Secrets that were deleted since still open images"), done.err);
  BOOST_TEST(Proven().empty());
}

namespace {

// Until it says so much, or ends.
void Until(const RunningCommand& command, const std::function<bool()>& done) {
  for (int i = 0; i < 600 && command.Runs() && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  BOOST_TEST(done(), "out: " << command.out() << "err: " << command.err());
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(it_goes_on_with_each_new_list_and_no_owner_is_in_its_way, Published) {
  Must(owner->Close());
  RunningCommand command({WAYBILL_CLI, "reconcile", "--store", files.store(), "--published",
                          volume(), "--every", "1s"});
  Until(command, [&] { return Contains(command.err(), "owner"); });
  owner = Must(NodeStore::Open({.directory = files.store(), .witness = Witness::Remembered()}));
  Must(owner->Serve());
  Until(command, [&] { return Contains(command.err(), "nothing was published yet"); });
  Prove(1);
  Prove(2);
  // Newer than anything, but not than the token.
  const std::int64_t first = Ahead();
  Publish({.as_of = first - 10, .secrets = {1}, .accounts = {5}});
  Until(command, [&] { return Contains(command.err(), "the next list will tell"); });
  BOOST_TEST(Proven().size() == 2U);
  // One of last week says so, whether or not it counts.
  Publish({.as_of = Now() - 7 * 24 * 3600, .secrets = {1}, .accounts = {5}});
  Until(command, [&] { return Contains(command.err(), "that were deleted since still open"); });
  // The first that is newer than the token forgets nothing that was proven after that.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Publish({.as_of = Ahead(), .secrets = {1}, .accounts = {5}});
  Until(command, [&] { return Contains(command.out(), "1 exist, 0 gone, 1 newer; 0 records"); });
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Publish({.as_of = Ahead(), .secrets = {1}, .accounts = {5, 6}});
  Until(command, [&] { return Contains(command.out(), "1 exist, 1 gone, 0 newer; 1 record"); });
  BOOST_TEST(Proven() == (std::set<std::string>{UidOf(1)}), boost::test_tools::per_element());
  // An older one, put back, and one that is damaged.
  const std::string before = ReadFile(files / "store/data.mdb");
  Publish({.as_of = first, .accounts = {5}});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  PublishBytes("x");
  Until(command, [&] { return Contains(command.err(), "it breaks off in its head"); });
  BOOST_TEST(Proven().size() == 1U);
  BOOST_TEST((ReadFile(files / "store/data.mdb") == before));
  kill(command.pid(), SIGTERM);
  BOOST_TEST(command.Wait().exit_code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

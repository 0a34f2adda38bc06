// A backup with a flipped bit, cut short, or with pages of zeros: either it is refused and the
// store is unchanged, or restoring gives exactly what the sound backup gives.

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/disk/page_walk/page_format.h"
#include "store/maintenance.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(backup_flips)

namespace {

namespace fs = std::filesystem;
// A store of version 2, its backup of version 1, and the result of restoring it.
class Flipping {
 public:
  Flipping() : store_(1) {
    const fs::path made = store_.Migrate(2).backup;
    backup_ = ReadFile(made);
    sound_ = ReadFile(store_.database());
    Must(RestoreStore(store_.From(made)));
    restored_ = Tables();
    identity_ = IdentityOf(store_.directory());
  }

  const std::string& backup() const { return backup_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t taken() const { return taken_; }

  void Try(const std::string& bytes) {
    fs::remove(store_.directory() / "lock.mdb");
    fs::remove(store_.directory() / "commit.mark");  // it tells of what was restored before
    fs::remove_all(store_.directory() / "quarantine");
    WriteFile(store_.database(), sound_);
    const fs::path path = store_.scratch() / "backup.mdb";
    WriteFile(path, bytes);
    const auto result = RestoreStore(store_.From(path));
    if (result) {
      ++taken_;
      BOOST_TEST((Tables() == restored_));
      BOOST_TEST((IdentityOf(store_.directory()).uuid == identity_.uuid));
      BOOST_TEST(IdentityOf(store_.directory()).hash_seed == identity_.hash_seed);
    } else {
      ++refused_;
      BOOST_TEST((result.error().code == ErrorCode::kDamaged), result.error().ToString());
      BOOST_TEST((ReadFile(store_.database()) == sound_));
      BOOST_TEST(!fs::exists(store_.directory() / "quarantine"));
      BOOST_TEST(!fs::exists(store_.directory() / "new.tmp"));
    }
  }

 private:
  RawModel Tables() const {
    RawModel values = ValuesIn(store_.directory());
    values.erase("");
    return values;
  }

  VersionedStore store_;
  std::string backup_;
  std::string sound_;
  RawModel restored_;
  internal::Identity identity_;
  std::uint64_t refused_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(one_bit, Flipping) {
  Draw draw(SeedOfThisRun());
  Try(backup());
  BOOST_TEST_REQUIRE(taken() == 1U);
  std::uint64_t flips = 0;
  for (std::size_t at = 0; at < backup().size(); ++at) {
    const std::size_t page = at / kPage;
    const std::size_t header =
        page < internal::kMetaPages ? internal::kMetaBytes : internal::kPageHeaderBytes;
    if (at % kPage >= header && !draw.OneIn(40)) continue;
    std::string bytes = backup();
    FlipBit(bytes, at * 8 + draw.Below(8));
    BOOST_TEST_CONTEXT("byte " << at) { Try(bytes); }
    ++flips;
  }
  BOOST_TEST_MESSAGE(flips << " flips: " << refused() << " refused, " << taken() << " taken");
  BOOST_TEST(refused() > flips / 3);
}

BOOST_FIXTURE_TEST_CASE(pages_that_are_missing_or_zero, Flipping) {
  for (std::size_t page = 0; page * kPage < backup().size(); ++page) {
    BOOST_TEST_CONTEXT("page " << page) {
      Try(backup().substr(0, page * kPage));
      Try(backup().substr(0, page * kPage + 100));
      std::string bytes = backup();
      bytes.replace(page * kPage, kPage, kPage, '\0');
      Try(bytes);
    }
  }
  // The first meta page of a compact copy says only how large a page is.
  BOOST_TEST(taken() <= 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

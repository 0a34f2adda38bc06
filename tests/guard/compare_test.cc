// The guard's decision table, row by row (guard/compare.cc): one moment of a node's life each, and
// nothing that the disk or a clock could change.

#include "guard/compare.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet/kubelet_records.h"
#include "store/base/sha256.h"
#include "tests/support/store_fixture.h"

namespace waybill::guard {
namespace {

using testing::Must;
using What = Taken::What;
using Form = SeenFile::Form;
using Tenants = std::vector<std::string>;

constexpr std::uint64_t kSeed = 7;
constexpr const char* kApp = "r.example/a/app";
constexpr const char* kImage = "r.example/a/app:v1";
const std::string kRef = "sha256:" + std::string(64, '1');
const FileName kFile = internal::RecordNameOf(kRef);
const FileName kIntent = internal::RecordNameOf(kImage);
constexpr std::int64_t kThen = 1'767'225'600;

ImagePulledRecord RecordOf(const Tenants& tenants, std::int64_t seconds = kThen) {
  ImagePulledRecord record{.image_ref = kRef, .last_updated = Timestamp{seconds, 0}};
  for (const std::string& tenant : tenants) {
    ImagePullCredentials& entry = record.credential_mapping[kApp];
    if (tenant == "*") {
      entry.node_pods_accessible = true;
    } else {
      entry.kubernetes_secrets.push_back({.uid = "u-" + tenant,
                                          .namespace_name = tenant,
                                          .name = "pull",
                                          .credential_hash = "hash-" + tenant});
    }
  }
  return record;
}

Items ItemsFor(const Tenants& tenants) { return ItemsOf(RecordOf(tenants), kSeed); }

// A node with one image. Nothing is known, nothing is there, and no kubelet runs.
class Scene {
 public:
  Scene() {
    files_.seed = kSeed;
    files_.node.folders = look.folders;
  }

  // What the file of the image says.
  SeenFile& File(const Tenants& tenants, Form form = Form::kKubelets, std::int64_t time = kThen) {
    SeenFile& file = look.pulled[kFile];
    file.what = SeenFile::What::kRecord;
    file.form = form;
    file.record = RecordOf(tenants, time);
    file.about = kFile;
    file.items = ItemsOf(file.record, kSeed);
    file.digest = Must(internal::Sha256(EncodePulledRecord(file.record)));
    return file;
  }
  SeenFile& Intent(Form form = Form::kKubelets) {
    SeenFile& file = look.pulling[kIntent];
    file.what = SeenFile::What::kIntent;
    file.form = form;
    file.about = kIntent;
    file.image = kImage;
    file.inode = 1;
    return file;
  }
  // What a running kubelet may have in memory of it.
  FileRow& Row(const Tenants& may_have) {
    FileRow& row = files_.records[kFile];
    row.path = "pulled/" + kFile;
    row.may_have = ItemsFor(may_have);
    return row;
  }
  // That the file was taken over as it is.
  FileRow& Taken() {
    const SeenFile& file = look.pulled.at(kFile);
    FileRow& row = files_.records[kFile];
    row.path = "pulled/" + kFile;
    row.content = file.digest;
    row.time = file.record.last_updated->seconds;
    row.may_have = file.items;
    return row;
  }
  FileRow& IntentRow(std::int64_t since) {
    FileRow& row = files_.intents[kIntent];
    row.path = "pulling/" + kIntent;
    row.inode = 1;
    row.image = kImage;
    row.since = since;
    return row;
  }
  internal::KubeletNode& Node() { return files_.node; }
  // What the store has of the image.
  internal::ImageRow& InStore(const Tenants& proven, const Tenants& counting) {
    auto& image = content.images.emplace_back();
    image.row.subject = kRef;
    image.row.pulled = internal::PulledPart{.last_updated = Timestamp{kThen, 0},
                                            .entries = RecordOf(proven).credential_mapping};
    image.counting = RecordOf(counting).credential_mapping;
    return image.row;
  }
  internal::ImageRow& Preloaded() {
    auto& image = content.images.emplace_back();
    image.row.subject = kRef;
    image.row.preloaded = internal::PreloadedPart{.names = {kImage}};
    return image.row;
  }
  void Lists() {
    list = {{.id = kRef, .repo_tags = {kImage}}};
    context.had_list = true;
  }
  // A list with the image is about to be judged.
  void Judges() {
    list = {{.id = kRef, .repo_tags = {kImage}}};
    listing_ = {kFile};
    context.listing = &listing_;
  }
  // The kubelet has run since before the look before, and the guard saw it begin.
  void Runs() {
    context.life = files_.node.life = "1";
    context.began_seen = context.watched = true;
  }

  const Compared& Play() {
    content.has_evidence = true;
    known_.emplace(content, list);
    must_ = internal::WhatItMustFind(content, known_->images(), list.empty() ? nullptr : &list,
                                     internal::ForWhom::kGuard);
    compared_ = Compare(look, files_, *known_, must_, context);
    return compared_;
  }
  const guard::Taken* Takes(What what) {
    Play();
    for (const auto& one : compared_.into) {
      if (one.what == what) return &one;
    }
    return nullptr;
  }
  const Act* Acts() {
    Play();
    return compared_.acts.empty() ? nullptr : &compared_.acts.front();
  }
  bool Does(Act::What what, Act::Why why, const Tenants& with = {}) {
    const Act* const act = Acts();
    return act != nullptr && act->what == what && act->why == why && act->items == ItemsFor(with);
  }

  Look look{.pulled = {},
            .pulling = {},
            .folders = "as they are",
            .wide = {},
            .too_many = {},
            .written = {}};
  internal::StoreContent content;
  std::vector<ListedImage> list;
  Context context;

 private:
  KnownFiles files_;
  std::set<FileName> listing_;
  std::optional<Known> known_;
  MustFind must_;
  Compared compared_;
};

bool Proves(Scene& scene, const Tenants& tenants) {
  const Taken* const taken = scene.Takes(What::kProven);
  return taken != nullptr && taken->items == ItemsFor(tenants);
}

BOOST_AUTO_TEST_SUITE(compare)

// R1, R2
BOOST_AUTO_TEST_CASE(what_a_kubelet_writes_under_our_eyes_is_proven_if_its_memory_is_known) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {"a"});
  scene.Row({"a"});
  scene.File({"a", "b"});
  BOOST_TEST(Proves(scene, {"b"}));
  scene.context.began_seen = false;
  BOOST_TEST(!scene.Takes(What::kProven));
  BOOST_TEST(scene.Takes(What::kSeen));
  scene.context.nothing_ends = true;
  BOOST_TEST(Proves(scene, {"b"}));
}

// What it may have in memory is not new, whatever counts by now.
BOOST_AUTO_TEST_CASE(what_a_kubelet_may_have_in_memory_proves_nothing) {
  Scene scene;
  scene.Runs();
  scene.InStore({}, {});
  scene.Row({"a"});
  scene.File({"a"});
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.Lists();
  scene.Taken();
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kStale));  // F4
}

// R18
BOOST_AUTO_TEST_CASE(a_decision_proves_nothing) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {"a"});
  scene.Row({"a", "b"});
  SeenFile& file = scene.File({"a"});
  for (const std::string like : {"a", "b"}) {
    auto& secrets = file.record.credential_mapping[kApp].kubernetes_secrets;
    secrets.resize(1);
    secrets.push_back(
        {.uid = "u-x", .namespace_name = "x", .name = "pull", .credential_hash = "hash-" + like});
    file.items = ItemsOf(file.record, kSeed);
    const Taken* const taken = scene.Takes(What::kProven);
    BOOST_REQUIRE(taken != nullptr);
    // Akin to what counts it counts as that; akin to what only a memory has, not at all.
    BOOST_TEST(taken->items.size() == (like == "a" ? 1U : 0U));
  }
}

// R19
BOOST_AUTO_TEST_CASE(a_pull_without_credentials_takes_no_secrets_place) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {});  // it ended, and shows all the same that one was needed
  scene.Row({});
  scene.File({"*"});
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.context.node_had_none = [](const std::string& name) { return name == kApp; };
  BOOST_TEST(Proves(scene, {"*"}));
  scene.context.watched = false;
  scene.Node().folders = "others";
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.content.images.clear();
  scene.Row({"a"});
  scene.context.watched = true;
  scene.context.node_had_none = {};
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.Row({});
  BOOST_TEST(Proves(scene, {"*"}));
}

// R3, R4, R10, R11
BOOST_AUTO_TEST_CASE(what_came_unseen_counts_if_a_kubelet_can_have_written_it) {
  Scene scene;
  scene.InStore({"a"}, {"a"});
  scene.File({"a", "b"}, Form::kKubelets, kThen + 1);
  scene.Row({"a"});
  scene.Node().folders = "others";
  BOOST_TEST(Proves(scene, {"b"}));
  BOOST_TEST(scene.Takes(What::kUnrecorded));  // D1
  scene.context.lost = true;
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.context.lost = false;
  scene.Node().folders = scene.look.folders;  // no kubelet ran: somebody wrote it in place
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.Node().folders = "others";
  scene.File({"a", "b"}, Form::kKubelets, kThen - 1);  // an older copy
  BOOST_TEST(!scene.Takes(What::kProven));
}

// A list may close an image in the second in which a kubelet proves it.
BOOST_AUTO_TEST_CASE(a_proof_of_the_very_second_of_a_closing_counts) {
  Scene scene;
  scene.InStore({}, {}).pulled->closed_by = internal::ClosedBy::kList;
  scene.File({"a"});
  scene.Node().folders = "others";
  BOOST_TEST(Proves(scene, {"a"}));
  scene.content.images.clear();
  scene.InStore({"b"}, {});
  BOOST_TEST(!scene.Takes(What::kProven));
}

// R7, R8, R24, R25
BOOST_AUTO_TEST_CASE(waybills_own_files_tell_the_store_nothing_but_after_a_loss) {
  Scene scene;
  scene.File({"a"}, Form::kOwn);
  BOOST_TEST(scene.Takes(What::kSeen));  // its row is lost
  scene.Row({"a"});
  BOOST_TEST(scene.Play().into.size() == 0U);
  scene.context.first = true;
  BOOST_TEST(Proves(scene, {"a"}));
  scene.context.first = false;
  scene.context.lost = true;
  BOOST_TEST(!scene.Takes(What::kPulled));
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Takes(What::kPulled));
}

// R5
BOOST_AUTO_TEST_CASE(a_record_without_a_known_credential_shows_a_pull_once_a_list_has_its_image) {
  Scene scene;
  scene.context.lost = true;
  scene.Node().folders = "others";
  scene.File({"a"});
  BOOST_TEST(!scene.Takes(What::kPulled));
  BOOST_TEST(scene.Play().wants_list);
  // So that it is not new when the list comes, and the guard watches.
  BOOST_TEST(scene.Takes(What::kSeen));
  scene.Taken();
  scene.context.watched = true;
  scene.context.began_seen = true;
  scene.Judges();
  BOOST_TEST(scene.Takes(What::kPulled));
  BOOST_TEST(!scene.Takes(What::kProven));
}

// R6, R13, R21, F2, F5, F6
BOOST_AUTO_TEST_CASE(what_is_no_kubelets_word_closes_its_image) {
  Scene scene;
  scene.File({"a"}).planted = "others may write it";
  BOOST_TEST(scene.Play().into.empty());
  BOOST_TEST(scene.Play().waits_for_list);
  scene.Judges();
  const Taken* const taken = scene.Takes(What::kDamaged);
  BOOST_REQUIRE(taken != nullptr);
  BOOST_TEST(taken->text == kRef);
  scene.context.listing = nullptr;
  scene.Lists();
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted));
  scene.Preloaded();
  BOOST_TEST(scene.Does(Act::What::kRemove, Act::Why::kPlanted));
  scene.content.images.clear();
  scene.list.front().id = "sha256:" + std::string(64, '2');
  // Its image may come back.
  BOOST_TEST(scene.Play().acts.back().name == kFile);
  BOOST_TEST((scene.Play().acts.back().what == Act::What::kExchange));
}

// R20
BOOST_AUTO_TEST_CASE(nothing_new_counts_in_a_folder_that_others_may_write) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {"a"});
  scene.Row({"a"});
  scene.File({"a", "b"});
  scene.look.wide = "others may write in it";
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.Taken();
  BOOST_TEST(!scene.Play().waits_for_list);  // it is known
  // What was planted stays so, whatever its folder is now.
  scene.look.wide.clear();
  FileRow& row = scene.Row({"a"});
  row.content.reset();
  row.refused = scene.look.pulled.at(kFile).digest;
  row.refused_planted = true;
  BOOST_TEST(!scene.Takes(What::kProven));
}

// R16
BOOST_AUTO_TEST_CASE(what_came_and_went_unread_leaves_an_unknown_memory) {
  Scene scene;
  scene.Runs();
  scene.look.written[{KubeletFolder::kPulled, kFile}] = 1;
  BOOST_TEST(scene.Takes(What::kLostSight));
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Takes(What::kLostSight));
  scene.File({"a"}).about = kIntent;  // of another image
  BOOST_TEST(scene.Takes(What::kLostSight));
  scene.File({"a"});
  BOOST_TEST(!scene.Takes(What::kLostSight));
}

// I1, I2, I3, I8, I9, I11, I13
BOOST_AUTO_TEST_CASE(an_intent_is_a_pull_of_the_kubelet_that_wrote_it) {
  Scene scene;
  scene.Intent();
  BOOST_TEST(scene.Takes(What::kUnknownEnd));
  scene.Runs();
  scene.look.written[{KubeletFolder::kPulling, kIntent}] = 1;
  const Taken* began = scene.Takes(What::kBegan);
  BOOST_REQUIRE(began != nullptr);
  BOOST_TEST(!began->several);
  scene.look.written[{KubeletFolder::kPulling, kIntent}] = 2;
  BOOST_TEST(scene.Takes(What::kBegan)->several);
  scene.look.written.clear();
  scene.context.began = 5;
  BOOST_TEST(scene.Takes(What::kUnknownEnd));  // older than its kubelet
  scene.context.began.reset();
  scene.IntentRow(1);
  BOOST_TEST(scene.Play().into.empty());
  scene.context.now = 3;
  scene.context.window = 1;
  BOOST_TEST(scene.Takes(What::kEnded)->stays);
  scene.look.pulling.clear();
  BOOST_TEST(!scene.Takes(What::kEnded)->stays);
  scene.Intent(Form::kOwn);
  scene.look.pulling[kIntent].inode = 2;
  BOOST_TEST(!scene.Takes(What::kEnded)->stays);
  scene.context.life = "2";
  BOOST_TEST(scene.Takes(What::kEnded)->stays);
}

// A file that others may write hides behind no format and no link, and nobody's memory is known who
// may have read what can't be parsed here.
BOOST_AUTO_TEST_CASE(a_planted_file_in_a_later_format_is_planted_all_the_same) {
  Scene scene;
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  SeenFile& file = scene.File({"*"});
  file.what = SeenFile::What::kLaterFormat;
  file.planted = "others may write it";
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted, {"a"}));
  file.planted.clear();
  scene.look.wide = "others may write there";
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted, {"a"}));
}

// What a kubelet of unknown memory wrote before it ended proves nothing.
BOOST_AUTO_TEST_CASE(evidence_is_judged_by_the_memory_of_its_writer) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {"a"});
  scene.Row({"a"});
  scene.File({"a", "b"});
  scene.context.life = "2";
  BOOST_TEST(!scene.Takes(What::kProven));
  scene.Node().began_seen = true;
  BOOST_TEST(Proves(scene, {"b"}));
}

// D2, K4
BOOST_AUTO_TEST_CASE(a_full_queue_is_an_unrecorded_period_and_an_unknown_memory) {
  Scene scene;
  scene.Runs();
  BOOST_TEST(!scene.Takes(What::kUnrecorded));
  scene.look.overflow = true;
  BOOST_TEST(scene.Takes(What::kUnrecorded));
  BOOST_TEST(scene.Takes(What::kLostSight));
}

// F1, F3, F4, F9
BOOST_AUTO_TEST_CASE(a_record_must_say_what_counts) {
  Scene scene;
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  BOOST_TEST(scene.Does(Act::What::kCreate, Act::Why::kMissing, {"a"}));
  scene.File({"a", "b"});
  scene.Taken();
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kStale, {"a"}));
  BOOST_TEST(scene.Acts()->keeps);
  scene.File({"a"});
  scene.Taken();
  BOOST_TEST(scene.Play().acts.empty());
  scene.look.pulled[kFile].what = SeenFile::What::kLaterFormat;
  BOOST_TEST(scene.Play().acts.empty());
  BOOST_TEST(scene.Play().later_formats.size() == 1U);
  scene.content.images.clear();
  scene.InStore({}, {});
  scene.File({}, Form::kOwn);
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kForm));
  scene.Runs();  // it may have read it
  BOOST_TEST(scene.Play().acts.empty());
}

// F7, F8
BOOST_AUTO_TEST_CASE(the_record_of_a_preloaded_image_goes_if_no_kubelet_goes_by_it) {
  Scene scene;
  scene.Lists();
  internal::ImageRow& row = scene.Preloaded();
  scene.File({"a"});
  scene.Taken();
  BOOST_TEST(scene.Does(Act::What::kRemove, Act::Why::kPreloaded));
  scene.Runs();
  BOOST_TEST(scene.Does(Act::What::kRemove, Act::Why::kPreloaded));  // of before it was gone
  row.pulled = internal::PulledPart{.entries = RecordOf({"a"}).credential_mapping};
  BOOST_TEST(scene.Play().acts.empty());
  BOOST_TEST(scene.Play().waiting.contains(kRef));
}

// F10, F11, F12
BOOST_AUTO_TEST_CASE(the_record_of_an_image_that_is_away_stays_with_what_counts) {
  Scene scene;
  scene.context.had_list = true;
  scene.InStore({"a", "b"}, {"b"}).absent = 1;
  scene.File({"a", "b"});
  scene.Taken();
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kUnlisted, {"b"}));
  scene.Runs();
  BOOST_TEST(scene.Play().acts.empty());
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Play().acts.empty());
  scene.context.live = false;
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kForm));
  scene.context.had_list = false;
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kForm));
}

// K3, K6, K8
BOOST_AUTO_TEST_CASE(what_a_kubelet_may_read_amid_a_change_is_noted_before_it) {
  Scene scene;
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  scene.File({"a", "b"});
  scene.Taken();
  BOOST_REQUIRE(scene.Play().may_have.size() == 1U);
  BOOST_TEST((scene.Play().may_have.front().items == ItemsFor({"a", "b"})));
  BOOST_TEST(scene.Play().may_have.front().changing);
  scene.look.pulled[kFile].about = kIntent;  // under another's name
  const auto notes = scene.Play().may_have;
  BOOST_REQUIRE(notes.size() == 2U);
  BOOST_TEST(notes.front().name == kIntent);
  BOOST_TEST((notes.front().items == ItemsFor({"a", "b"})));
}

// D5
BOOST_AUTO_TEST_CASE(the_folders_are_noted_when_nothing_is_left_to_do) {
  Scene scene;
  BOOST_TEST(scene.Play().into.empty());
  scene.Node().folders = "others";
  BOOST_TEST(!scene.Takes(What::kFolders));  // they are an unrecorded period first
  scene.context.watched = true;
  BOOST_TEST(scene.Takes(What::kFolders));
  scene.look.folders.clear();
  BOOST_TEST(!scene.Takes(What::kFolders));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill::guard

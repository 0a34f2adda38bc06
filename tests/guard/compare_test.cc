// The guard's decision table, row by row (guard/compare.cc): one moment of a node's life each, and
// nothing that the disk or a clock could change.

#include "guard/compare.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/sha256.h"
#include "tests/support/store_fixture.h"

namespace waybill::guard {
namespace {

using testing::Must;
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
  // Of the same repository.
  void AnotherPull() {
    files_.intents[internal::RecordNameOf("r.example/a/app:v2")] = {.image = "r.example/a/app:v2",
                                                                    .since = 1};
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
    context.began_seen = context.watched = files_.node.began_seen = true;
  }

  const Compared& Play() {
    content.has_evidence = true;
    known_.emplace(content, list);
    must_ = internal::WhatItMustFind(content, known_->images(),
                                     list.empty() && !context.had_list ? nullptr : &list,
                                     internal::ForWhom::kGuard);
    compared_ = Compare(look, files_, *known_, must_, context);
    return compared_;
  }
  // What the store is told; nullptr: nothing of that kind.
  template <typename Call>
  const Call* Tells() {
    Play();
    for (const StoreCall& call : compared_.calls) {
      if (const auto* one = std::get_if<Call>(&call)) return one;
    }
    return nullptr;
  }
  // Which rows it has then. The file's row is like that of a file that was taken over.
  const KnownFiles& Rows() { return Play().rows ? *compared_.rows : files_; }
  bool Notes() {
    const FileRow* const row = Rows().FindRecord(kFile);
    return compared_.evidence.contains({KubeletFolder::kPulled, kFile}) && row != nullptr &&
           row->content == look.pulled.at(kFile).digest;
  }
  bool Pulled() {
    const auto* const put = Tells<PutImage>();
    return put != nullptr && put->record.image_ref == kRef &&
           put->record.credential_mapping.empty();
  }
  bool LosesSight() { return !Rows().node.began_seen && files_.node.began_seen; }
  // What a list settles whose token was drawn then.
  std::optional<EndPull> Settles(std::int64_t drawn) {
    known_.emplace(content, list);
    const Compared settled = SettleProven(files_, *known_, drawn);
    if (settled.calls.empty()) return std::nullopt;
    return std::get<EndPull>(settled.calls.front());
  }
  const FileRow* IntentAfter() { return Rows().FindIntent(kIntent); }
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
  const auto* const proven = scene.Tells<ProvenRecord>();
  return proven != nullptr && ItemsOf(proven->put.record, kSeed) == ItemsFor(tenants);
}
bool ProvesNothing(Scene& scene) { return scene.Tells<ProvenRecord>() == nullptr; }

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
  BOOST_TEST(ProvesNothing(scene));
  BOOST_TEST(scene.Notes());
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
  BOOST_TEST(ProvesNothing(scene));
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
    const auto* const proven = scene.Tells<ProvenRecord>();
    BOOST_REQUIRE(proven != nullptr);
    // Akin to what counts it counts as that; akin to what only a memory has, not at all.
    BOOST_TEST(ItemsOf(proven->put.record, kSeed).size() == (like == "a" ? 1U : 0U));
  }
}

// R19
BOOST_AUTO_TEST_CASE(a_pull_without_credentials_takes_no_secrets_place) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {});  // it ended, and shows all the same that one was needed
  scene.Row({});
  scene.File({"*"});
  BOOST_TEST(ProvesNothing(scene));
  scene.context.node_had_none = [](const std::string& name) { return name == kApp; };
  BOOST_TEST(Proves(scene, {"*"}));
  scene.context.watched = false;
  scene.Node().folders = "others";
  BOOST_TEST(ProvesNothing(scene));
  scene.content.images.clear();
  scene.Row({"a"});
  scene.context.watched = true;
  scene.context.node_had_none = {};
  BOOST_TEST(ProvesNothing(scene));
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
  BOOST_TEST(scene.Tells<NoteUnrecordedPeriod>());  // D1
  scene.context.lost = true;
  BOOST_TEST(ProvesNothing(scene));
  scene.context.lost = false;
  scene.Node().folders = scene.look.folders;  // no kubelet ran: somebody wrote it in place
  BOOST_TEST(ProvesNothing(scene));
  scene.Node().folders = "others";
  scene.File({"a", "b"}, Form::kKubelets, kThen - 1);  // an older copy
  BOOST_TEST(ProvesNothing(scene));
  scene.File({"a", "b"}, Form::kKubelets, kThen + 1);  // older than what was taken over
  FileRow& row = scene.Row({"a"});
  row.content = internal::Sha256Digest{1};
  row.time = kThen + 2;
  BOOST_TEST(ProvesNothing(scene));
  row.gone = true;  // a kubelet's collector took that
  BOOST_TEST(Proves(scene, {"b"}));
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
  BOOST_TEST(ProvesNothing(scene));
}

// R7, R8, R24, R25
BOOST_AUTO_TEST_CASE(waybills_own_files_tell_the_store_nothing_but_after_a_loss) {
  Scene scene;
  scene.File({"a"}, Form::kOwn);
  BOOST_TEST(scene.Notes());  // its row is lost
  scene.Row({"a"});
  BOOST_TEST(!scene.Play().takes);
  scene.context.first = true;
  BOOST_TEST(Proves(scene, {"a"}));
  scene.context.first = false;
  scene.context.lost = true;
  BOOST_TEST(!scene.Pulled());
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Pulled());
}

// R5
BOOST_AUTO_TEST_CASE(a_record_without_a_known_credential_shows_a_pull_once_a_list_has_its_image) {
  Scene scene;
  scene.context.lost = true;
  scene.Node().folders = "others";
  scene.File({"a"});
  BOOST_TEST(!scene.Pulled());
  BOOST_TEST(scene.Play().wants_list);
  // So that it is not new when the list comes, and the guard watches.
  BOOST_TEST(scene.Notes());
  scene.Taken();
  scene.context.watched = true;
  scene.context.began_seen = true;
  scene.Judges();
  BOOST_TEST(scene.Pulled());
  BOOST_TEST(ProvesNothing(scene));
}

// R6, R13, R21, F2, F5, F6
BOOST_AUTO_TEST_CASE(what_is_no_kubelets_word_closes_its_image) {
  Scene scene;
  scene.File({"a"}).planted = "others may write it";
  BOOST_TEST(!scene.Play().takes);
  BOOST_TEST(scene.Play().waits_for_list);
  scene.Judges();
  BOOST_TEST(scene.Pulled());
  BOOST_TEST(scene.Rows().FindRecord(kFile)->refused.has_value());
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
  BOOST_TEST(ProvesNothing(scene));
  scene.Taken();
  BOOST_TEST(!scene.Play().waits_for_list);  // it is known
  // What was planted stays so, whatever its folder is now.
  scene.look.wide.clear();
  FileRow& row = scene.Row({"a"});
  row.content.reset();
  row.refused = scene.look.pulled.at(kFile).digest;
  row.refused_planted = true;
  BOOST_TEST(ProvesNothing(scene));
}

// R25
BOOST_AUTO_TEST_CASE(waybills_own_word_stays_where_others_may_write) {
  Scene scene;
  scene.Lists();
  scene.look.wide = "others may write in it";
  scene.InStore({}, {});
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Play().acts.empty());
  scene.content.images.clear();
  scene.InStore({"a"}, {"a"});
  scene.Row({"a"});
  scene.File({"a"}, Form::kOwn);
  BOOST_TEST(scene.Play().acts.empty());
  scene.File({"a", "b"}, Form::kOwn);
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted, {"a"}));
  // What closes is nobody's plant, whichever image it is of.
  scene.content.images.clear();
  scene.list.clear();
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kForm));
}

// R14
BOOST_AUTO_TEST_CASE(what_was_proven_stands_beside_what_counts_when_the_store_is_told) {
  ProvenRecord proven{.put = {.record = RecordOf({"b"}, kThen + 1)}, .items = ItemsFor({"b"})};
  ImagePulledRecord counts = RecordOf({"a"}, kThen + 2);
  counts.closed_because = "an older word";
  const auto items = [&] { return ItemsOf(Beside(proven, counts, kSeed).record, kSeed); };
  BOOST_TEST((items() == ItemsFor({"a", "b"})));
  BOOST_TEST(Beside(proven, counts, kSeed).record.last_updated->seconds == kThen + 2);
  BOOST_TEST(Beside(proven, counts, kSeed).record.closed_because == "an older word");
  proven.watched = true;  // so it is the newer one
  BOOST_TEST(Beside(proven, counts, kSeed).record.closed_because == "");
  counts.absent_since = Timestamp{kThen, 0};  // a kubelet begins anew with it
  BOOST_TEST((items() == ItemsFor({"b"})));
  proven.items = ItemsFor({"a", "b"});
  BOOST_TEST((items() == ItemsFor({"a", "b"})));
}

// R13, K9
BOOST_AUTO_TEST_CASE(what_a_kubelet_may_have_read_of_a_damaged_file_is_noted) {
  Scene scene;
  scene.Judges();
  SeenFile& file = scene.File({"a"});
  file.planted = "others may write it";
  BOOST_TEST((scene.Rows().FindRecord(kFile)->may_have == ItemsFor({"a"})));
  BOOST_TEST(!scene.Rows().node.read_unknown);
  BOOST_TEST(!scene.Tells<NoteUnrecordedPeriod>());
  file.what = SeenFile::What::kUnreadable;
  BOOST_TEST(scene.Rows().node.read_unknown);
  scene.list.front().id = "sha256:" + std::string(64, '2');
  BOOST_TEST(scene.Tells<NoteUnrecordedPeriod>());  // nobody knows of which image it is
}

// K7
BOOST_AUTO_TEST_CASE(a_record_that_is_gone_is_noted) {
  Scene scene;
  scene.Row({"a"});
  BOOST_TEST(scene.Rows().FindRecord(kFile)->gone);
}

// R16
BOOST_AUTO_TEST_CASE(what_came_and_went_unread_leaves_an_unknown_memory) {
  Scene scene;
  scene.Runs();
  scene.look.written[{KubeletFolder::kPulled, kFile}] = 1;
  BOOST_TEST(scene.LosesSight());
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.LosesSight());
  scene.File({"a"}).about = kIntent;  // of another image
  BOOST_TEST(scene.LosesSight());
  scene.File({"a"});
  BOOST_TEST(!scene.LosesSight());
}

// I1, I2, I3, I8, I9, I11, I13
BOOST_AUTO_TEST_CASE(an_intent_is_a_pull_of_the_kubelet_that_wrote_it) {
  Scene scene;
  scene.Intent();
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>());
  scene.Runs();
  scene.look.written[{KubeletFolder::kPulling, kIntent}] = 1;
  BOOST_TEST(scene.Tells<BeginPull>());
  BOOST_TEST(!scene.IntentAfter()->several);
  scene.look.written[{KubeletFolder::kPulling, kIntent}] = 2;
  BOOST_TEST(scene.IntentAfter()->several);
  scene.look.written.clear();
  scene.context.began = 5;
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>());  // older than its kubelet
  scene.context.began.reset();
  scene.IntentRow(1);
  BOOST_TEST(!scene.Play().takes);
  scene.context.now = 3;
  scene.context.window = 1;
  scene.content.pulls = {{.id = {9}, .image = kImage, .state = PullState::kRunning}};
  const auto ends = [&] {
    const auto* const end = scene.Tells<EndPull>();
    return end != nullptr && end->pull == 9U;
  };
  BOOST_TEST(ends());
  BOOST_TEST(scene.IntentAfter()->since == 0);  // its file stays
  scene.look.pulling.clear();
  BOOST_TEST(ends());
  BOOST_TEST(!scene.IntentAfter());
  scene.Intent(Form::kOwn);
  scene.look.pulling[kIntent].inode = 2;
  BOOST_TEST(ends());
  BOOST_TEST(!scene.IntentAfter());
  scene.look.pulling[kIntent].inode = 1;
  scene.context.now = 1;
  BOOST_TEST(!ends());
  scene.context.life = "2";
  BOOST_TEST(ends());
}

// I4, I5
BOOST_AUTO_TEST_CASE(an_intent_that_can_not_be_read_is_a_pull_that_nobody_saw_end) {
  Scene scene;
  scene.Runs();
  scene.look.written[{KubeletFolder::kPulling, kIntent}] = 1;  // it came and went
  BOOST_TEST(scene.Tells<NoteUnrecordedPeriod>());
  scene.Lists();  // which names it
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>()->image == kImage);
  BOOST_TEST(!scene.Tells<NoteUnrecordedPeriod>());
  scene.look.written.clear();
  SeenFile& file = scene.Intent();
  file.what = SeenFile::What::kUnreadable;
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>()->image == kImage);
  scene.list.clear();
  BOOST_TEST(scene.Tells<NoteUnrecordedPeriod>());
  BOOST_TEST(scene.IntentAfter()->inode == file.inode);  // it is told once
  file.what = SeenFile::What::kIntent;
  file.about = kFile;
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>()->image == kImage);
}

// I7, I13
BOOST_AUTO_TEST_CASE(a_pull_that_only_its_file_or_only_the_store_knows_has_an_unknown_end) {
  Scene scene;
  scene.Intent(Form::kOwn);
  BOOST_TEST(!scene.Tells<PullOfUnknownEnd>());
  scene.context.lost = true;
  BOOST_TEST(scene.Tells<PullOfUnknownEnd>());
  scene.content.pulls = {{.id = {9}, .image = kImage, .state = PullState::kRunning}};
  BOOST_TEST(!scene.Tells<PullOfUnknownEnd>());
  BOOST_TEST(scene.Tells<EndPull>()->pull == 9U);  // its row is lost
  scene.IntentRow(1);
  BOOST_TEST(!scene.Tells<EndPull>());
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
  scene.Node().began_seen = false;
  BOOST_TEST(ProvesNothing(scene));
  scene.Node().began_seen = true;
  BOOST_TEST(Proves(scene, {"b"}));
}

// K1, K2, K8
BOOST_AUTO_TEST_CASE(another_kubelet_has_what_its_files_say_in_memory) {
  Scene scene;
  scene.Runs();
  scene.InStore({"a"}, {"a"});
  scene.context.life = "2";
  const auto row = [&]() -> FileRow& {
    scene.File({"a"});
    FileRow& taken = scene.Taken();
    taken.may_have = ItemsFor({"a", "b"});
    return taken;
  };
  const auto has = [&](const Tenants& tenants) {
    return scene.Rows().FindRecord(kFile)->may_have == ItemsFor(tenants);
  };
  row();
  BOOST_TEST(has({"a"}));
  row().changing = true;
  BOOST_TEST(has({"a", "b"}));
  row().changing = false;
  scene.Row({"a", "b"}).content = internal::Sha256Digest{1};  // it changed since
  BOOST_TEST(has({"a", "b"}));
  row().changing = false;
  scene.look.pulled.clear();  // it went since
  BOOST_TEST(has({"a", "b"}));
  row().gone = true;  // long ago
  scene.look.pulled.clear();
  BOOST_TEST(has({"a"}));  // which is put back
  // It may only not have been found for a moment.
  row().gone = false;
  scene.Node().last_life = "2";
  BOOST_TEST(has({"a", "b"}));
  scene.Node().last_life = "1";
  scene.content.images.clear();
  scene.look.pulled[kFile].about = kIntent;  // it keeps that by the ref in it
  BOOST_TEST((scene.Rows().FindRecord(kIntent)->may_have == ItemsFor({"a"})));
}

BOOST_AUTO_TEST_CASE(what_another_kubelet_may_have_read_is_unknown_if_nobody_can_parse_it) {
  Scene scene;
  scene.Runs();
  scene.context.life = "2";
  scene.File({"a"});
  BOOST_TEST(!scene.Rows().node.read_unknown);
  scene.look.pulled[kFile].what = SeenFile::What::kUnreadable;
  scene.look.pulled[kFile].digest = {};
  BOOST_TEST(scene.Rows().node.read_unknown);
}

// S1
BOOST_AUTO_TEST_CASE(a_pull_that_proved_a_record_brought_its_image_if_the_list_has_that) {
  Scene scene;
  scene.Runs();
  scene.context.now = 5;
  scene.content.pulls = {{.id = {9}, .image = kImage, .state = PullState::kRunning}};
  FileRow& row = scene.IntentRow(1);
  row.proven_ref = kRef;
  row.several = true;
  BOOST_TEST(scene.Tells<EndPull>()->pull == 9U);
  row.several = false;
  BOOST_TEST(!scene.Tells<EndPull>());  // the next list tells
  BOOST_TEST(scene.IntentAfter()->ended == 5);
  row.since = 0;
  row.ended = 5;
  BOOST_TEST(!scene.Settles(5));  // it may have been made before the pull ended
  BOOST_TEST((scene.Settles(6)->outcome == PullOutcome::kUnknown));
  scene.Lists();
  BOOST_TEST((scene.Settles(5)->outcome == PullOutcome::kPulled));
  BOOST_TEST(scene.Settles(5)->image_ref == kRef);
  scene.AnotherPull();  // which may have brought it
  BOOST_TEST(!scene.Settles(5));
  BOOST_TEST((scene.Settles(6)->outcome == PullOutcome::kUnknown));
}

// D6
BOOST_AUTO_TEST_CASE(a_directory_that_was_used_may_have_pulls_of_anything) {
  Scene scene;
  scene.context.first = scene.look.was_used = true;
  BOOST_TEST(scene.Tells<PullOfAnything>());
  scene.Node().took_over = true;
  BOOST_TEST(!scene.Tells<PullOfAnything>());
}

// D2, K4
BOOST_AUTO_TEST_CASE(a_full_queue_is_an_unrecorded_period_and_an_unknown_memory) {
  Scene scene;
  scene.Runs();
  BOOST_TEST(!scene.Tells<NoteUnrecordedPeriod>());
  scene.look.overflow = true;
  BOOST_TEST(scene.Tells<NoteUnrecordedPeriod>());
  BOOST_TEST(scene.LosesSight());
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
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Does(Act::What::kRemove, Act::Why::kPreloaded));
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
}

// F2, F13, K3
BOOST_AUTO_TEST_CASE(what_nobody_can_parse_goes_once_it_is_noted) {
  Scene scene;
  SeenFile& file = scene.File({"a"});
  file.what = SeenFile::What::kUnreadable;
  file.planted = "others may write it";
  FileRow& row = scene.Row({});
  row.refused = file.digest;
  row.refused_planted = true;
  BOOST_TEST(scene.Play().acts.empty());
  scene.context.no_list_comes = true;
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted));
  BOOST_TEST(scene.Acts()->content == internal::kClosingLine);  // of whatever image it is
  BOOST_TEST(scene.Rows().node.read_unknown);
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kPlanted, {"a"}));
}

// R12
BOOST_AUTO_TEST_CASE(what_is_written_of_an_image_that_is_away_asks_for_a_list) {
  Scene scene;
  scene.Runs();
  internal::ImageRow& row = scene.InStore({"a"}, {});
  scene.Row({"a"});
  scene.File({"a"});
  BOOST_TEST(!scene.Play().wants_list);
  row.absent = 1;
  BOOST_TEST(scene.Play().wants_list);
}

// F12
BOOST_AUTO_TEST_CASE(before_a_list_nobody_knows_which_image_is_away) {
  Scene scene;
  scene.File({}, Form::kClosing);
  BOOST_TEST(scene.Play().acts.empty());
  scene.context.had_list = true;
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kForm));
  // One that was away may be back.
  scene.context.had_list = false;
  scene.look.pulled.clear();
  scene.InStore({"a"}, {"a"}).absent = 1;
  BOOST_TEST(scene.Does(Act::What::kCreate, Act::Why::kMissing, {"a"}));
}

// G2, G4
BOOST_AUTO_TEST_CASE(an_intent_is_there_while_its_pull_may_bring_something) {
  Scene scene;
  scene.Runs();
  SeenFile& file = scene.Intent();
  scene.IntentRow(0);
  scene.content.pulls = {{.id = {9}, .image = kImage, .state = PullState::kUnknown}};
  BOOST_TEST(scene.Play().acts.empty());
  file.planted = "others may write it";
  BOOST_TEST(scene.Does(Act::What::kExchange, Act::Why::kIntent));
  scene.content.pulls.clear();
  file.planted.clear();
  BOOST_TEST(scene.Play().acts.empty());  // a kubelet's own
  scene.Intent(Form::kOwn);
  BOOST_TEST(scene.Does(Act::What::kRemove, Act::Why::kNoIntent));
}

// K6
BOOST_AUTO_TEST_CASE(what_waybill_puts_back_is_no_longer_gone) {
  Scene scene;
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  FileRow& row = scene.Row({});
  row.content = internal::Sha256Digest{1};
  row.gone = true;
  const FileRow after = *scene.Rows().FindRecord(kFile);
  BOOST_TEST(!after.gone);
  BOOST_TEST(!after.content);
  BOOST_TEST((after.may_have == ItemsFor({"a"})));
}

// K3, K6, K8
BOOST_AUTO_TEST_CASE(what_a_kubelet_may_read_amid_a_change_is_noted_before_it) {
  Scene scene;
  scene.Lists();
  scene.InStore({"a"}, {"a"});
  scene.File({"a", "b"});
  scene.Taken();
  scene.Row({});
  BOOST_TEST((scene.Rows().FindRecord(kFile)->may_have == ItemsFor({"a", "b"})));
  BOOST_TEST(scene.Rows().FindRecord(kFile)->changing);
  scene.look.pulled[kFile].about = kIntent;  // under another's name
  BOOST_TEST((scene.Rows().FindRecord(kIntent)->may_have == ItemsFor({"a", "b"})));
  BOOST_TEST((scene.Rows().FindRecord(kFile)->may_have == ItemsFor({"a"})));
}

// D5
BOOST_AUTO_TEST_CASE(the_folders_are_noted_when_nothing_is_left_to_do) {
  Scene scene;
  BOOST_TEST(!scene.Play().takes);
  scene.Node().folders = "others";
  BOOST_TEST(scene.Rows().node.folders == "others");  // they are an unrecorded period first
  scene.context.watched = true;
  BOOST_TEST(scene.Rows().node.folders == scene.look.folders);
  scene.look.folders.clear();
  BOOST_TEST(scene.Rows().node.folders == "others");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill::guard

// What a kubelet without waybill must find in its files: the guard compares them with it, an export
// writes it, and a kubelet with waybill inside leaves it to one that takes its place. Reads and
// writes no file.
//
//   a listed image that is preloaded              no file: open to all pods; not one in quarantine,
//                                                 which gets a record without credentials
//   any other listed image                        its record with the credentials that count now;
//                                                 there is none: a record without credentials
//   an image that is not listed, nor known        its record; a guard without a list takes none for
//   gone to be gone one that is known to be gone                  nothing must be there; what is
//   there may have the
//                                                 credentials that are on record and count
//   an unresolved pull                            its intent. Not if its string names a preloaded
//                                                 image, which that would close, unless a kubelet
//                                                 keeps it itself
//
// A kubelet that is started in the place of one with waybill (kAdapter) finds no credentials, and
// the intents of a pull under each name that a runtime may list: it pulls again what it can't know.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_WHAT_IT_MUST_FIND_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_WHAT_IT_MUST_FIND_H_

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/images/image_row.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// "sha256-<hex>": the name of the file about an image ref or, in pulling/, an image string. Throws
// if libcrypto refuses: no image may go without its file.
std::string RecordNameOf(std::string_view ref_or_image);

// A store at one moment.
struct StoreContent {
  std::uint64_t sequence = 0;  // of the newest commit
  struct Image {
    ImageRow row;               // with everything that is on record
    Credentials counting = {};  // what counts now of it
  };
  std::vector<Image> images = {};
  std::vector<UnresolvedPull> pulls = {};
  std::vector<QuarantinedFile> quarantine = {};
  // Mode strict: it knows which images are preloaded, and the names of each image.
  bool has_evidence = false;
  bool awaits_first_list = false;  // no list was judged yet
  bool distrustful = false;
  // After how long what counts now is less by itself. nullopt: never.
  std::optional<std::chrono::seconds> next_end = {};
  std::vector<Revocation> revocations = {};
  bool has_ages = false;          // proofs end by their age
  std::uint64_t kubelet_ran = 0;  // NodeStore::NoteKubeletBegan, by Revocation::ran
};

enum class ForWhom : std::uint8_t {
  kGuard,    // a kubelet beside waybill: records lie under the IDs of images
  kExport,   // one without: also under every other ref, since it knows no aliases
  kAdapter,  // one that is started in the place of a kubelet with waybill: no credentials
};

// Finds what is known of an image, by any of its refs. The store's content outlives it.
class KnownImages {
 public:
  using Image = StoreContent::Image;
  using Copies = std::vector<const Image*>;  // of each handler

  explicit KnownImages(const StoreContent& content);

  const std::map<std::string, Copies>& by_subject() const { return rows_; }
  // Of the image that the ref names: its subject, and every way to write it.
  std::string Home(const std::string& image_ref) const;
  std::vector<std::string> TextsOf(const std::string& image_ref) const;
  // The default handler's copy; nullptr: nothing is known of one.
  const Image* Find(const std::string& image_ref) const { return DefaultCopy(Home(image_ref)); }
  const Image* DefaultCopy(const std::string& subject) const;

 private:
  bool has_evidence_;
  std::map<std::string, Copies> rows_;
  std::map<std::string, std::string> owners_;  // of digests: subjects; empty: of two images
};

struct MustFind {
  using FileName = std::string;
  struct Record {
    ImagePulledRecord record = {};
    bool is_on_record = true;          // otherwise a list has it, and nobody knows it as preloaded
    bool is_alias = false;             // the same under another ref of the image
    bool is_of_other_handler = false;  // of which a kubelet knows nothing
  };
  // Such a record must be there. Without credentials: the image is closed.
  std::map<FileName, Record> records;
  // No record may be there. By file name the image's ref, and whether pulls of it are on record.
  struct Preloaded {
    std::string ref;
    bool is_recorded = false;
  };
  std::map<FileName, Preloaded> preloaded;
  // Such an intent must be there.
  std::map<FileName, std::string> intents;

  // Of kAdapter: an image was pulled, and no list told yet by which ID a kubelet asks for it. Until
  // then only its intent closes it.
  bool awaits_list = false;

  std::set<FileName> unresolved;               // intents of all unresolved pulls
  std::map<std::string, std::size_t> running;  // how many pulls of each string run
};

// `listed`: the runtime's last list; nullptr: there is none yet. `kept`: names of intents that a
// running kubelet keeps. `preloaded_is_open`: to pods without credentials
// (NeverVerifyPreloadedImages); otherwise a kubelet goes by the records of preloaded images, too.
MustFind WhatItMustFind(const StoreContent& content, const KnownImages& images,
                        const std::vector<ListedImage>* listed, ForWhom for_whom,
                        const std::set<std::string>& kept = {}, bool preloaded_is_open = true);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_WHAT_IT_MUST_FIND_H_

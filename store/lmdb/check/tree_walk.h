// Walks one tree from its root: every page, every node, every separator, every count.

#ifndef WAYBILL_STORE_LMDB_CHECK_TREE_WALK_H_
#define WAYBILL_STORE_LMDB_CHECK_TREE_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/lmdb/check/findings.h"
#include "store/lmdb/check/node_page.h"
#include "store/lmdb/check/page_claims.h"
#include "store/lmdb/check/page_file.h"
#include "store/lmdb/check/page_format.h"

namespace waybill::internal {

// Receives what lies in the sound leaves, in key order.
class LeafSink {
 public:
  virtual ~LeafSink() = default;
  virtual void OnLeafValue(const std::byte* key, std::span<const std::byte> value) = 0;
  virtual void OnLeafTree(const std::byte* name, const TreeRecord& tree) = 0;
};

// An overflow extent's header, checked against the value it holds. `problem`: nullptr if sound.
struct Extent {
  std::uint64_t value_offset = 0;  // in the file
  std::uint32_t pages = 0;
  const char* problem = nullptr;
};
Extent OpenExtent(PageFile& file, std::uint32_t page_bytes, PageNumber number,
                  std::uint32_t value_bytes);

// "free list", "main", or the table's name: as text if it prints, else in hex.
std::string TreeLabel(TreeKind kind, std::string_view name);

class TreeWalk {
 public:
  // kExact holds the tree to its record. kSalvage still reports, but follows the pages' own kinds
  // where the record's depth may be wrong.
  enum class Mode { kExact, kSalvage };

  TreeWalk(PageFile& file, std::uint32_t page_bytes, PageClaims& claims, Findings& findings,
           Mode mode)
      : file_(file), page_bytes_(page_bytes), claims_(claims), findings_(findings), mode_(mode) {}

  // A page that breaks a rule is reported and left out with all below it.
  void Walk(TreeKind kind, std::string_view name, const TreeRecord& tree, LeafSink& sink);

  std::uint64_t pages() const { return pages_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  void Visit(PageNumber number, unsigned level, KeyBounds bounds);
  void VisitBranch(const NodePage& page, unsigned level, KeyBounds bounds);
  void VisitLeaf(PageNumber number, const NodePage& page);
  // nullptr: the value is left out, and `*problem` says why.
  const std::byte* OverflowValue(PageNumber first, std::uint32_t bytes, const char** problem);
  void CheckRecord(const TreeRecord& tree);
  void Skip(PageNumber number, const char* problem);
  void Report(const std::string& text) { findings_.Add(TreeLabel(kind_, name_) + ": " + text); }

  PageFile& file_;
  const std::uint32_t page_bytes_;
  PageClaims& claims_;
  Findings& findings_;
  const Mode mode_;

  // Of the tree being walked.
  TreeKind kind_ = TreeKind::kMain;
  std::string_view name_;
  LeafSink* sink_ = nullptr;
  unsigned depth_ = 0;
  TreeRecord seen_{};

  std::uint64_t pages_ = 0;
  std::uint64_t skipped_ = 0;
  std::array<PageFile::Scratch, kMaxTreeDepth> level_scratch_;
  PageFile::Scratch extent_scratch_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_TREE_WALK_H_

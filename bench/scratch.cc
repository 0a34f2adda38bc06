#include "bench/scratch.h"

#include <stdlib.h>

#include <stdexcept>

#include "bench/measure.h"

namespace waybill::bench {

Scratch::Scratch() {
  const char* const chosen = getenv("TMPDIR");
  const std::filesystem::path base = chosen != nullptr && *chosen != '\0'
                                         ? std::filesystem::path(chosen)
                                         : std::filesystem::path("/var/tmp");
  std::string name = (base / "waybill-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a directory below " + base.string() +
                             "; set TMPDIR to a directory on a disk");
  }
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

NodeStoreOptions ScratchStore::Options() const {
  std::filesystem::path witness = directory_;
  witness += ".witness";
  NodeStoreOptions options{.directory = directory_, .witness = Witness::At(witness)};
  options.images_on_node.emplace();
  options.allow_empty = true;
  return options;
}

void ScratchStore::Open() {
  store_ = Must(NodeStore::Open(Options()));
  const OpeningReport& report = store_->recovery_report();
  if (report.distrustful || !report.findings.empty()) {
    throw std::runtime_error("a store did not open clean; the figures are void");
  }
}

void ScratchStore::Close() {
  if (store_) Must(store_->Close());
  store_.reset();
}

void ScratchStore::Fill(std::size_t records) {
  Open();
  FromAllCallers(records,
                 [&](std::size_t i) { Must(store_->Call(PutImage{.record = RecordOf(i)})); });
}

}  // namespace waybill::bench

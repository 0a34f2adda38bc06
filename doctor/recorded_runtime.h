// A runtime whose answers were recorded: a folder with what crictl prints.
//
//   version.json   crictl version -o json
//   images.json    crictl images -o json
//   info.json      crictl info

#ifndef WAYBILL_DOCTOR_RECORDED_RUNTIME_H_
#define WAYBILL_DOCTOR_RECORDED_RUNTIME_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cri/runtime.h"

namespace waybill::doctor {

class RecordedRuntime final : public cri::Runtime {
 public:
  explicit RecordedRuntime(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // "containerd v2.4.2".
  Result<std::string> Name() const;
  Result<std::vector<ListedImage>> ListImages() override;
  Result<std::vector<RuntimeHandler>> RuntimeHandlers() override;
  Result<std::string> Status() override;

 private:
  std::filesystem::path folder_;
};

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_RECORDED_RUNTIME_H_
